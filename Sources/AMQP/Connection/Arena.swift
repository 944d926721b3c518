internal import CRabbitMQ

/// Memory for what a single call hands to the library: it borrows every string and table that it is given.
///
/// All of it is released at once after the call, so nothing here may outlive one.
final class Arena {
    private let pool: UnsafeMutablePointer<amqp_pool_t>

    init() {
        pool = .allocate(capacity: 1)
        init_amqp_pool(pool, 1 << 16)
    }

    deinit {
        empty_amqp_pool(pool)
        pool.deallocate()
    }

    func release() {
        recycle_amqp_pool(pool)
    }

    private func allocate<Value>(_ type: Value.Type, count: Int) -> UnsafeMutablePointer<Value>? {
        guard count > 0, let raw = amqp_pool_alloc(pool, count * MemoryLayout<Value>.stride) else {
            return nil
        }
        return raw.bindMemory(to: type, capacity: count)
    }

    func bytes(_ bytes: [UInt8]) -> amqp_bytes_t {
        guard let copy = allocate(UInt8.self, count: bytes.count) else {
            return amqp_bytes_t(len: 0, bytes: nil)
        }
        copy.initialize(from: bytes, count: bytes.count)
        return amqp_bytes_t(len: bytes.count, bytes: UnsafeMutableRawPointer(copy))
    }

    func bytes(_ string: ShortString) -> amqp_bytes_t { bytes(string.bytes) }

    func table(_ table: Table) -> amqp_table_t {
        guard let entries = allocate(amqp_table_entry_t.self, count: table.entries.count) else {
            return amqp_table_t(num_entries: 0, entries: nil)
        }
        for (index, entry) in table.entries.enumerated() {
            (entries + index).initialize(
                to: amqp_table_entry_t(key: bytes(entry.key), value: field(entry.value)))
        }
        return amqp_table_t(num_entries: Int32(clamping: table.entries.count), entries: entries)
    }

    private func array(_ elements: [FieldValue]) -> amqp_array_t {
        guard let entries = allocate(amqp_field_value_t.self, count: elements.count) else {
            return amqp_array_t(num_entries: 0, entries: nil)
        }
        for (index, element) in elements.enumerated() { (entries + index).initialize(to: field(element)) }
        return amqp_array_t(num_entries: Int32(clamping: elements.count), entries: entries)
    }

    private func field(_ value: FieldValue) -> amqp_field_value_t {
        var field = amqp_field_value_t()
        func kind(_ kind: amqp_field_value_kind_t) { field.kind = UInt8(truncatingIfNeeded: kind.rawValue) }
        switch value {
        case .bool(let value):
            kind(AMQP_FIELD_KIND_BOOLEAN)
            field.value.boolean = value ? 1 : 0
        case .int8(let value):
            kind(AMQP_FIELD_KIND_I8)
            field.value.i8 = value
        case .uint8(let value):
            kind(AMQP_FIELD_KIND_U8)
            field.value.u8 = value
        case .int16(let value):
            kind(AMQP_FIELD_KIND_I16)
            field.value.i16 = value
        case .uint16(let value):
            kind(AMQP_FIELD_KIND_U16)
            field.value.u16 = value
        case .int32(let value):
            kind(AMQP_FIELD_KIND_I32)
            field.value.i32 = value
        case .uint32(let value):
            kind(AMQP_FIELD_KIND_U32)
            field.value.u32 = value
        case .int64(let value):
            kind(AMQP_FIELD_KIND_I64)
            field.value.i64 = value
        case .uint64(let value):
            kind(AMQP_FIELD_KIND_U64)
            field.value.u64 = value
        case .float(let value):
            kind(AMQP_FIELD_KIND_F32)
            field.value.f32 = value
        case .double(let value):
            kind(AMQP_FIELD_KIND_F64)
            field.value.f64 = value
        case .decimal(let scale, let value):
            kind(AMQP_FIELD_KIND_DECIMAL)
            field.value.decimal = amqp_decimal_t(decimals: scale, value: value)
        case .string(let value):
            kind(AMQP_FIELD_KIND_UTF8)
            field.value.bytes = bytes(value)
        case .bytes(let value):
            kind(AMQP_FIELD_KIND_BYTES)
            field.value.bytes = bytes(value)
        case .array(let elements):
            kind(AMQP_FIELD_KIND_ARRAY)
            field.value.array = array(elements)
        case .timestamp(let value):
            kind(AMQP_FIELD_KIND_TIMESTAMP)
            field.value.u64 = value
        case .table(let value):
            kind(AMQP_FIELD_KIND_TABLE)
            field.value.table = table(value)
        case .void:
            kind(AMQP_FIELD_KIND_VOID)
        }
        return field
    }

    func properties(_ properties: Properties) -> amqp_basic_properties_t {
        var encoded = amqp_basic_properties_t()
        func text(
            _ flag: Int32, _ text: ShortString?,
            _ path: WritableKeyPath<amqp_basic_properties_t, amqp_bytes_t>
        ) {
            guard let text else { return }
            encoded._flags |= amqp_flags_t(flag)
            encoded[keyPath: path] = bytes(text)
        }
        text(AMQP_BASIC_CONTENT_TYPE_FLAG, properties.contentType, \.content_type)
        text(AMQP_BASIC_CONTENT_ENCODING_FLAG, properties.contentEncoding, \.content_encoding)
        if let headers = properties.headers {
            encoded._flags |= amqp_flags_t(AMQP_BASIC_HEADERS_FLAG)
            encoded.headers = table(headers)
        }
        if let deliveryMode = properties.deliveryMode {
            encoded._flags |= amqp_flags_t(AMQP_BASIC_DELIVERY_MODE_FLAG)
            encoded.delivery_mode = deliveryMode
        }
        if let priority = properties.priority {
            encoded._flags |= amqp_flags_t(AMQP_BASIC_PRIORITY_FLAG)
            encoded.priority = priority
        }
        text(AMQP_BASIC_CORRELATION_ID_FLAG, properties.correlationID, \.correlation_id)
        text(AMQP_BASIC_REPLY_TO_FLAG, properties.replyTo, \.reply_to)
        text(AMQP_BASIC_EXPIRATION_FLAG, properties.expiration, \.expiration)
        text(AMQP_BASIC_MESSAGE_ID_FLAG, properties.messageID, \.message_id)
        if let timestamp = properties.timestamp {
            encoded._flags |= amqp_flags_t(AMQP_BASIC_TIMESTAMP_FLAG)
            encoded.timestamp = timestamp
        }
        text(AMQP_BASIC_TYPE_FLAG, properties.type, \.type)
        text(AMQP_BASIC_USER_ID_FLAG, properties.userID, \.user_id)
        text(AMQP_BASIC_APP_ID_FLAG, properties.appID, \.app_id)
        text(AMQP_BASIC_CLUSTER_ID_FLAG, properties.clusterID, \.cluster_id)
        return encoded
    }
}
