import CPostgres

/// A server's address as libpq takes it, and a name for it that may be told.
struct PostgresURL {
    let text: String
    /// Host, port and database, without user and password.
    let name: String

    /// It does not repeat the URL, and with it the password, as libpq's own words may.
    private static let problem =
        "it is no connection URL of PostgreSQL: postgresql://user:password@host:5432/database would be right"

    /// What there is to say against a URL; nil where it is right.
    static func problem(with text: String) -> String? { values(of: text) == nil ? problem : nil }

    /// What a URL says, by libpq's keywords; nil where it is none.
    private static func values(of text: String) -> [String: String]? {
        var message: UnsafeMutablePointer<CChar>?
        guard let parsed = PQconninfoParse(text, &message) else {
            PQfreemem(message)
            return nil
        }
        defer { PQconninfoFree(parsed) }
        var values: [String: String] = [:]
        var option = parsed
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val { values[String(cString: keyword)] = String(cString: value) }
            option += 1
        }
        // libpq looks at ports only when it connects.
        let ports = (values["port"] ?? "").split(separator: ",")
        return ports.allSatisfy { UInt16($0).map { $0 > 0 } ?? false } ? values : nil
    }

    init(_ text: String) throws(StoreError) {
        guard let values = Self.values(of: text) else {
            throw .denied(server: "PostgreSQL", Self.problem)
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
