internal import CRabbitMQ

extension Frame {
    /// `nil` for frames without meaning here (heartbeats). It throws for frames that the library could not decode.
    init?(_ frame: amqp_frame_t) throws(AMQPError) {
        switch frame.frame_type {
        case UInt8(AMQP_FRAME_METHOD):
            self = try Frame(method: frame.payload.method)
        case UInt8(AMQP_FRAME_HEADER):
            let header = frame.payload.properties
            // Of another class the library decodes another structure.
            guard header.class_id == UInt16(AMQP_BASIC_CLASS), let decoded = header.decoded else {
                throw .protocolViolation("a content header of class \(header.class_id)")
            }
            let properties = decoded.assumingMemoryBound(to: amqp_basic_properties_t.self).pointee
            self = .header(bodySize: header.body_size, properties: Properties(properties))
        case UInt8(AMQP_FRAME_BODY):
            self = .body(Array(frame.payload.body_fragment))
        default:
            return nil
        }
    }

    private init(method: amqp_method_t) throws(AMQPError) {
        guard let decoded = method.decoded else { throw .protocolViolation("an empty method frame") }
        func read<Value>(_ type: Value.Type) -> Value { decoded.assumingMemoryBound(to: type).pointee }
        switch method.id {
        case AMQP_BASIC_DELIVER_METHOD:
            let deliver = read(amqp_basic_deliver_t.self)
            self = .deliver(
                DeliverMethod(
                    consumerTag: ShortString(deliver.consumer_tag), deliveryTag: deliver.delivery_tag,
                    redelivered: deliver.redelivered != 0, exchange: ShortString(deliver.exchange),
                    routingKey: ShortString(deliver.routing_key)))
        case AMQP_BASIC_RETURN_METHOD:
            let returned = read(amqp_basic_return_t.self)
            self = .returned(
                ReturnMethod(
                    code: returned.reply_code, text: SafeText.oneLine(Array(returned.reply_text)),
                    exchange: ShortString(returned.exchange), routingKey: ShortString(returned.routing_key)))
        case AMQP_BASIC_ACK_METHOD:
            let ack = read(amqp_basic_ack_t.self)
            self = .confirm(tag: ack.delivery_tag, multiple: ack.multiple != 0, isAck: true)
        case AMQP_BASIC_NACK_METHOD:
            let nack = read(amqp_basic_nack_t.self)
            self = .confirm(tag: nack.delivery_tag, multiple: nack.multiple != 0, isAck: false)
        case AMQP_BASIC_CANCEL_METHOD:
            let cancel = read(amqp_basic_cancel_t.self)
            self = .cancel(consumerTag: ShortString(cancel.consumer_tag), noWait: cancel.nowait != 0)
        case AMQP_CHANNEL_FLOW_METHOD:
            self = .flow(active: read(amqp_channel_flow_t.self).active != 0)
        case AMQP_CHANNEL_CLOSE_METHOD:
            let close = read(amqp_channel_close_t.self)
            self = .channelClose(
                AMQPError(
                    scope: .channel, closeCode: close.reply_code, text: Array(close.reply_text),
                    classID: close.class_id, methodID: close.method_id))
        case AMQP_CONNECTION_CLOSE_METHOD:
            self = .connectionClose(AMQPError(read(amqp_connection_close_t.self)))
        case AMQP_CONNECTION_BLOCKED_METHOD:
            self = .blocked(reason: SafeText.oneLine(Array(read(amqp_connection_blocked_t.self).reason)))
        case AMQP_CONNECTION_UNBLOCKED_METHOD: self = .unblocked
        case AMQP_CHANNEL_CLOSE_OK_METHOD: self = .channelCloseOK
        case AMQP_CONNECTION_CLOSE_OK_METHOD: self = .connectionCloseOK
        case AMQP_CHANNEL_OPEN_OK_METHOD: self = .reply(.open)
        case AMQP_EXCHANGE_DECLARE_OK_METHOD: self = .reply(.exchangeDeclare)
        case AMQP_EXCHANGE_BIND_OK_METHOD: self = .reply(.exchangeBind)
        case AMQP_QUEUE_DECLARE_OK_METHOD:
            let answer = read(amqp_queue_declare_ok_t.self)
            self = .queueDeclared(messages: answer.message_count, consumers: answer.consumer_count)
        case AMQP_QUEUE_BIND_OK_METHOD: self = .reply(.queueBind)
        case AMQP_BASIC_QOS_OK_METHOD: self = .reply(.qos)
        case AMQP_CONFIRM_SELECT_OK_METHOD: self = .reply(.confirmSelect)
        case AMQP_BASIC_CONSUME_OK_METHOD: self = .reply(.consume)
        default: self = .other(method.id)
        }
    }
}

extension AMQPError {
    init(_ close: amqp_connection_close_t) {
        self.init(
            scope: .connection, closeCode: close.reply_code, text: Array(close.reply_text),
            classID: close.class_id,
            methodID: close.method_id)
    }

    /// A status of the library, classified by what can be done about it.
    init(status: Int32, doing what: String, isLogin: Bool = false) {
        let words = amqp_error_string2(status).map { String(cString: $0) } ?? "status \(status)"
        let kind: Kind
        var isConfiguration = false
        switch status {
        case AMQP_STATUS_HOSTNAME_RESOLUTION_FAILED.rawValue: kind = .dns
        case AMQP_STATUS_TIMEOUT.rawValue: kind = isLogin ? .handshakeTimeout : .rpcTimeout
        case AMQP_STATUS_HEARTBEAT_TIMEOUT.rawValue: kind = .heartbeat
        case AMQP_STATUS_NO_MEMORY.rawValue: kind = .resources
        case AMQP_STATUS_SSL_PEER_VERIFY_FAILED.rawValue, AMQP_STATUS_SSL_HOSTNAME_VERIFY_FAILED.rawValue:
            kind = .tls
            isConfiguration = true
        case AMQP_STATUS_SSL_CONNECTION_FAILED.rawValue, AMQP_STATUS_SSL_SET_ENGINE_FAILED.rawValue:
            kind = .tls
        case AMQP_STATUS_SSL_ERROR.rawValue:
            // Once logged in it is how a peer looks that hangs up without TLS's farewell.
            kind = isLogin ? .tls : .socketClosed
        case AMQP_STATUS_CONNECTION_CLOSED.rawValue, AMQP_STATUS_SOCKET_ERROR.rawValue,
            AMQP_STATUS_SOCKET_CLOSED.rawValue, AMQP_STATUS_TCP_ERROR.rawValue:
            kind = isLogin ? .handshake : .socketClosed
        case AMQP_STATUS_BROKER_UNSUPPORTED_SASL_METHOD.rawValue:
            kind = .handshake
            isConfiguration = true
        case AMQP_STATUS_TABLE_TOO_BIG.rawValue, AMQP_STATUS_INVALID_PARAMETER.rawValue:
            kind = .protocolViolation
            isConfiguration = true
        default:
            kind = isLogin ? .handshake : .protocolViolation
        }
        self.init(scope: .connection, kind: kind, text: "\(what): \(words)", isConfiguration: isConfiguration)
    }
}
