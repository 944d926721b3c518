package import AMQP

/// A queue that belongs to one connection and goes with it: for replies, events or others' ticks.
package struct OwnQueue: Hashable, Sendable {
    /// What the queue hears.
    package struct Binding: Hashable, Sendable {
        package let exchange: ShortString
        package let routingKey: ShortString

        package init(exchange: ShortString, routingKey: ShortString = "") {
            self.exchange = exchange
            self.routingKey = routingKey
        }
    }

    package let name: ShortString
    /// Always active: what is our own exists nowhere else, also where the shared objects are only checked.
    package let declarations: [DeclarationStep]
}

extension Topology {
    /// A process's own queue; nil where the name would be longer than 255 bytes.
    ///
    /// - Parameters:
    ///   - component: such as `scheduler` or `send`.
    ///   - token: random, so that no two processes meet.
    ///   - takesReplies: binds it to the exchange of replies where there is one; with the default exchange
    ///     the name alone does.
    package func ownQueue(
        component: String, token: String, bindings: [OwnQueue.Binding] = [], takesReplies: Bool = false,
        arguments: Table = [:]
    ) -> OwnQueue? {
        guard let name = ownQueueName(component: component, token: token) else { return nil }
        var wanted = bindings
        if takesReplies, replies == .exchange {
            wanted.append(OwnQueue.Binding(exchange: repliesExchange, routingKey: name))
        }
        let queue = Declaration.queue(
            name: name, durable: false, exclusive: true, autoDelete: true, arguments: arguments)
        let bound = wanted.map {
            Declaration.bindQueue(
                queue: name, exchange: $0.exchange, routingKey: $0.routingKey, arguments: [:])
        }
        return OwnQueue(
            name: name, declarations: ([queue] + bound).map { DeclarationStep($0, mode: .active) })
    }

    /// Events of some types, for a process's own queue.
    package func bindings(to types: [EventType]) -> [OwnQueue.Binding] {
        types.compactMap { type in
            ShortString(type.rawValue).map {
                OwnQueue.Binding(exchange: eventsTopicExchange, routingKey: $0)
            }
        }
    }
}
