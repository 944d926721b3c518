// How many bytes a value takes on the wire, `nil` if it nests too deeply to be sent.
//
// The library sends a publication's first frame before it finds that the properties do not fit into the second, and
// leaves the channel with half a message. So it is measured before anything is sent.

extension Table {
    func encodedSize(depth: Int = 1) -> Int? {
        guard depth <= FieldValue.maximumDepth else { return nil }
        var size = 4
        for entry in entries {
            guard let value = entry.value.encodedSize(depth: depth) else { return nil }
            size += 1 + entry.key.bytes.count + value
        }
        return size
    }
}

extension FieldValue {
    /// With its type letter.
    func encodedSize(depth: Int) -> Int? {
        switch self {
        case .void: return 1
        case .bool, .int8, .uint8: return 2
        case .int16, .uint16: return 3
        case .int32, .uint32, .float: return 5
        case .int64, .uint64, .double, .timestamp: return 9
        case .decimal: return 6
        case .string(let bytes), .bytes(let bytes): return 5 + bytes.count
        case .table(let table): return table.encodedSize(depth: depth + 1).map { $0 + 1 }
        case .array(let elements):
            guard depth < FieldValue.maximumDepth else { return nil }
            var size = 5
            for element in elements {
                guard let value = element.encodedSize(depth: depth + 1) else { return nil }
                size += value
            }
            return size
        }
    }
}

extension Properties {
    /// With its flags.
    var encodedSize: Int? {
        var size = 2
        func add(_ text: ShortString?) { if let text { size += 1 + text.bytes.count } }
        add(contentType)
        add(contentEncoding)
        add(correlationID)
        add(replyTo)
        add(expiration)
        add(messageID)
        add(type)
        add(userID)
        add(appID)
        add(clusterID)
        if deliveryMode != nil { size += 1 }
        if priority != nil { size += 1 }
        if timestamp != nil { size += 8 }
        if let headers {
            guard let table = headers.encodedSize() else { return nil }
            size += table
        }
        return size
    }

    /// Whether a header frame of this connection holds them: 20 bytes of a frame are not for properties.
    func fit(frameMaximum: Int) -> Bool {
        guard let size = encodedSize else { return false }
        return size <= frameMaximum - 20
    }
}
