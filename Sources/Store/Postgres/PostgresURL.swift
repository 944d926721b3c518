import CPostgres

/// A server's address as libpq takes it, and a name for it that may be told.
struct PostgresURL {
    let text: String
    /// Host, port and database, without user and password.
    let name: String

    /// What libpq has to say against a URL; nil where it is right.
    static func problem(with text: String) -> String? {
        var message: UnsafeMutablePointer<CChar>?
        let parsed = PQconninfoParse(text, &message)
        defer {
            PQconninfoFree(parsed)
            PQfreemem(message)
        }
        guard parsed == nil else { return nil }
        // The message may repeat the URL, and with it the password.
        return
            "it is no connection URL of PostgreSQL: postgresql://user:password@host:5432/database would be right"
    }

    init(_ text: String) throws(StoreError) {
        var message: UnsafeMutablePointer<CChar>?
        guard let parsed = PQconninfoParse(text, &message) else {
            PQfreemem(message)
            throw .denied(server: "PostgreSQL", Self.problem(with: text) ?? "its URL cannot be read")
        }
        defer { PQconninfoFree(parsed) }
        var values: [String: String] = [:]
        var option = parsed
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val { values[String(cString: keyword)] = String(cString: value) }
            option += 1
        }
        let hosts = (values["host"] ?? values["hostaddr"] ?? "localhost").split(separator: ",")
        let ports = (values["port"] ?? "").split(separator: ",")
        let places = hosts.enumerated().map { index, host in
            let port = ports.indices.contains(index) ? ports[index] : ports.last
            return port.map { "\(host):\($0)" } ?? String(host)
        }
        self.text = text
        name = "postgresql://\(places.joined(separator: ","))/\(values["dbname"] ?? values["user"] ?? "")"
    }
}
