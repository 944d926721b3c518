internal import CRabbitMQ

// From the library's memory to ours. Everything is copied: the library's pool is recycled after the next frames.

extension Array where Element == UInt8 {
    init(_ bytes: amqp_bytes_t) {
        guard bytes.len > 0, let start = bytes.bytes else {
            self = []
            return
        }
        self.init(UnsafeRawBufferPointer(start: start, count: bytes.len))
    }
}

extension ShortString {
    init(_ bytes: amqp_bytes_t) {
        self.init(wire: Array(bytes))
    }
}

extension Table {
    /// `nil` if it nests too deeply; the library itself has no limit but the stack.
    init?(_ table: amqp_table_t, depth: Int = 1) {
        guard depth <= FieldValue.maximumDepth else { return nil }
        self.init()
        guard table.num_entries > 0, let start = table.entries else { return }
        entries.reserveCapacity(Int(table.num_entries))
        for entry in UnsafeBufferPointer(start: start, count: Int(table.num_entries)) {
            guard let value = FieldValue(entry.value, depth: depth) else { return nil }
            entries.append(Entry(key: ShortString(entry.key), value: value))
        }
    }
}

extension FieldValue {
    init?(_ field: amqp_field_value_t, depth: Int) {
        let value = field.value
        switch field.kind {
        case UInt8(AMQP_FIELD_KIND_BOOLEAN.rawValue): self = .bool(value.boolean != 0)
        case UInt8(AMQP_FIELD_KIND_I8.rawValue): self = .int8(value.i8)
        case UInt8(AMQP_FIELD_KIND_U8.rawValue): self = .uint8(value.u8)
        case UInt8(AMQP_FIELD_KIND_I16.rawValue): self = .int16(value.i16)
        case UInt8(AMQP_FIELD_KIND_U16.rawValue): self = .uint16(value.u16)
        case UInt8(AMQP_FIELD_KIND_I32.rawValue): self = .int32(value.i32)
        case UInt8(AMQP_FIELD_KIND_U32.rawValue): self = .uint32(value.u32)
        case UInt8(AMQP_FIELD_KIND_I64.rawValue): self = .int64(value.i64)
        case UInt8(AMQP_FIELD_KIND_U64.rawValue): self = .uint64(value.u64)
        case UInt8(AMQP_FIELD_KIND_F32.rawValue): self = .float(value.f32)
        case UInt8(AMQP_FIELD_KIND_F64.rawValue): self = .double(value.f64)
        case UInt8(AMQP_FIELD_KIND_DECIMAL.rawValue):
            self = .decimal(scale: value.decimal.decimals, value: value.decimal.value)
        case UInt8(AMQP_FIELD_KIND_UTF8.rawValue): self = .string(Array(value.bytes))
        case UInt8(AMQP_FIELD_KIND_BYTES.rawValue): self = .bytes(Array(value.bytes))
        case UInt8(AMQP_FIELD_KIND_TIMESTAMP.rawValue): self = .timestamp(value.u64)
        case UInt8(AMQP_FIELD_KIND_VOID.rawValue): self = .void
        case UInt8(AMQP_FIELD_KIND_TABLE.rawValue):
            guard let table = Table(value.table, depth: depth + 1) else { return nil }
            self = .table(table)
        case UInt8(AMQP_FIELD_KIND_ARRAY.rawValue):
            guard depth < FieldValue.maximumDepth else { return nil }
            var elements: [FieldValue] = []
            if value.array.num_entries > 0, let start = value.array.entries {
                for element in UnsafeBufferPointer(start: start, count: Int(value.array.num_entries)) {
                    guard let element = FieldValue(element, depth: depth + 1) else { return nil }
                    elements.append(element)
                }
            }
            self = .array(elements)
        default:
            // The library refuses other letters before they get here.
            return nil
        }
    }
}

extension Properties {
    init(_ properties: amqp_basic_properties_t) {
        self.init()
        let flags = properties._flags
        func text(_ flag: Int32, _ bytes: amqp_bytes_t) -> ShortString? {
            flags & amqp_flags_t(flag) != 0 ? ShortString(bytes) : nil
        }
        contentType = text(AMQP_BASIC_CONTENT_TYPE_FLAG, properties.content_type)
        contentEncoding = text(AMQP_BASIC_CONTENT_ENCODING_FLAG, properties.content_encoding)
        if flags & amqp_flags_t(AMQP_BASIC_HEADERS_FLAG) != 0 {
            headers = Table(properties.headers)
            headersTooDeep = headers == nil
        }
        if flags & amqp_flags_t(AMQP_BASIC_DELIVERY_MODE_FLAG) != 0 {
            deliveryMode = properties.delivery_mode
        }
        if flags & amqp_flags_t(AMQP_BASIC_PRIORITY_FLAG) != 0 { priority = properties.priority }
        correlationID = text(AMQP_BASIC_CORRELATION_ID_FLAG, properties.correlation_id)
        replyTo = text(AMQP_BASIC_REPLY_TO_FLAG, properties.reply_to)
        expiration = text(AMQP_BASIC_EXPIRATION_FLAG, properties.expiration)
        messageID = text(AMQP_BASIC_MESSAGE_ID_FLAG, properties.message_id)
        if flags & amqp_flags_t(AMQP_BASIC_TIMESTAMP_FLAG) != 0 { timestamp = properties.timestamp }
        type = text(AMQP_BASIC_TYPE_FLAG, properties.type)
        userID = text(AMQP_BASIC_USER_ID_FLAG, properties.user_id)
        appID = text(AMQP_BASIC_APP_ID_FLAG, properties.app_id)
        clusterID = text(AMQP_BASIC_CLUSTER_ID_FLAG, properties.cluster_id)
    }
}
