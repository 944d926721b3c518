internal import CRabbitMQ

extension ChannelMethod {
    /// Encodes and sends the method; what it borrows lives in the arena until the call is over.
    func send(state: amqp_connection_state_t, channel: amqp_channel_t, arena: Arena) -> Int32 {
        switch self {
        case .open:
            var method = amqp_channel_open_t()
            return amqp_send_method(state, channel, AMQP_CHANNEL_OPEN_METHOD, &method)
        case .declare(let step):
            return step.send(state: state, channel: channel, arena: arena)
        case .qos(let prefetch):
            var method = amqp_basic_qos_t()
            method.prefetch_count = prefetch
            return amqp_send_method(state, channel, AMQP_BASIC_QOS_METHOD, &method)
        case .confirmSelect:
            var method = amqp_confirm_select_t()
            return amqp_send_method(state, channel, AMQP_CONFIRM_SELECT_METHOD, &method)
        case .consume(let plan):
            var method = amqp_basic_consume_t()
            method.queue = arena.bytes(plan.queue)
            method.consumer_tag = arena.bytes(plan.tag)
            method.no_ack = plan.noAck ? 1 : 0
            method.exclusive = plan.exclusive ? 1 : 0
            method.arguments = arena.table(plan.arguments)
            return amqp_send_method(state, channel, AMQP_BASIC_CONSUME_METHOD, &method)
        case .acknowledge(let tag, let multiple):
            var method = amqp_basic_ack_t()
            method.delivery_tag = tag
            method.multiple = multiple ? 1 : 0
            return amqp_send_method(state, channel, AMQP_BASIC_ACK_METHOD, &method)
        case .reject(let tag, let requeue):
            var method = amqp_basic_reject_t()
            method.delivery_tag = tag
            method.requeue = requeue ? 1 : 0
            return amqp_send_method(state, channel, AMQP_BASIC_REJECT_METHOD, &method)
        case .cancelOK(let consumerTag):
            var method = amqp_basic_cancel_ok_t()
            method.consumer_tag = arena.bytes(consumerTag)
            return amqp_send_method(state, channel, AMQP_BASIC_CANCEL_OK_METHOD, &method)
        case .flowOK(let active):
            var method = amqp_channel_flow_ok_t()
            method.active = active ? 1 : 0
            return amqp_send_method(state, channel, AMQP_CHANNEL_FLOW_OK_METHOD, &method)
        case .close:
            var method = amqp_channel_close_t()
            method.reply_code = UInt16(AMQP_REPLY_SUCCESS)
            return amqp_send_method(state, channel, AMQP_CHANNEL_CLOSE_METHOD, &method)
        case .closeOK:
            var method = amqp_channel_close_ok_t()
            return amqp_send_method(state, channel, AMQP_CHANNEL_CLOSE_OK_METHOD, &method)
        }
    }
}

extension DeclarationStep {
    fileprivate func send(state: amqp_connection_state_t, channel: amqp_channel_t, arena: Arena) -> Int32 {
        let passive: amqp_boolean_t = mode == .passive ? 1 : 0
        switch declaration {
        case .exchange(let name, let kind, let durable, let autoDelete, let isInternal, let arguments):
            var method = amqp_exchange_declare_t()
            method.exchange = arena.bytes(name)
            method.type = arena.bytes(kind)
            method.passive = passive
            method.durable = durable ? 1 : 0
            method.auto_delete = autoDelete ? 1 : 0
            method.internal = isInternal ? 1 : 0
            method.arguments = arena.table(arguments)
            return amqp_send_method(state, channel, AMQP_EXCHANGE_DECLARE_METHOD, &method)
        case .queue(let name, let durable, let exclusive, let autoDelete, let arguments):
            var method = amqp_queue_declare_t()
            method.queue = arena.bytes(name)
            method.passive = passive
            method.durable = durable ? 1 : 0
            method.exclusive = exclusive ? 1 : 0
            method.auto_delete = autoDelete ? 1 : 0
            method.arguments = arena.table(arguments)
            return amqp_send_method(state, channel, AMQP_QUEUE_DECLARE_METHOD, &method)
        case .bindQueue(let queue, let exchange, let routingKey, let arguments):
            var method = amqp_queue_bind_t()
            method.queue = arena.bytes(queue)
            method.exchange = arena.bytes(exchange)
            method.routing_key = arena.bytes(routingKey)
            method.arguments = arena.table(arguments)
            return amqp_send_method(state, channel, AMQP_QUEUE_BIND_METHOD, &method)
        case .bindExchange(let destination, let source, let routingKey, let arguments):
            var method = amqp_exchange_bind_t()
            method.destination = arena.bytes(destination)
            method.source = arena.bytes(source)
            method.routing_key = arena.bytes(routingKey)
            method.arguments = arena.table(arguments)
            return amqp_send_method(state, channel, AMQP_EXCHANGE_BIND_METHOD, &method)
        }
    }
}
