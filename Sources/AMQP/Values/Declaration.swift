/// Something that must exist on the broker before a channel is of use.
package enum Declaration: Hashable, Sendable {
    case exchange(
        name: ShortString, kind: ShortString, durable: Bool, autoDelete: Bool, internal: Bool,
        arguments: Table)
    case queue(name: ShortString, durable: Bool, exclusive: Bool, autoDelete: Bool, arguments: Table)
    case bindQueue(queue: ShortString, exchange: ShortString, routingKey: ShortString, arguments: Table)
    case bindExchange(
        destination: ShortString, source: ShortString, routingKey: ShortString, arguments: Table)
}

/// Whether a declaration creates or only looks.
package enum DeclareMode: Hashable, Sendable {
    /// Created if missing; an existing one must be equivalent, else the channel closes with 406.
    case active
    /// Exchanges and queues must exist (404 else), whatever their arguments; bindings, which cannot be looked up,
    /// are skipped. It needs no permission.
    case passive
}

/// One declaration and its mode; own queues are declared actively even where the shared topology is only checked.
package struct DeclarationStep: Hashable, Sendable {
    package var declaration: Declaration
    package var mode: DeclareMode

    package init(_ declaration: Declaration, mode: DeclareMode = .active) {
        self.declaration = declaration
        self.mode = mode
    }

    package init(declaration: Declaration, mode: DeclareMode) {
        self.init(declaration, mode: mode)
    }

    /// `false` for a passive binding, for which there is nothing to send.
    var isSent: Bool {
        switch (declaration, mode) {
        case (.bindQueue, .passive), (.bindExchange, .passive): false
        default: true
        }
    }
}
