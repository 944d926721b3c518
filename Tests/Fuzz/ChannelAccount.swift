@testable import AMQP

/// What a channel machine has said and what it may still say, kept as plain sets.
struct ChannelAccount {
    private let plan: ChannelPlan
    private let silent: ShortString
    /// Published and without an end yet.
    private var open: Set<UInt64> = []
    /// Delivered, not settled, and to be settled.
    private var deliveries: Set<UInt64> = []
    private var isOpened = false
    private var isClosed = false
    private var hasSentClose = false

    init(plan: ChannelPlan, silent: ShortString) {
        self.plan = plan
        self.silent = silent
    }

    mutating func published(_ publication: Publication) {
        if plan.confirms { open.insert(publication.id) }
    }

    mutating func note(_ actions: [ChannelMachine.Action]) {
        for action in actions {
            check(!isClosed, "\(action) after the end")
            switch action {
            case .send(let method): sent(method)
            case .opened:
                check(!isOpened, "opened twice")
                isOpened = true
            case .counted: check(plan.countsMessages && !isOpened, "counted unasked")
            case .deliver(let delivery): delivered(delivery)
            case .confirmed(let ids), .refused(let ids): for id in ids { end(id) }
            case .returned(let id, _, _): end(id)
            case .closed(_, let unknown):
                check(
                    unknown == open.sorted(), "unknown are \(unknown), without an end were \(open.sorted())")
                open = []
                isClosed = true
            }
        }
    }

    mutating func acknowledged(
        _ tags: [DeliveryTag], isOpen: Bool, by actions: [ChannelMachine.Action]
    ) {
        var asked = Set(tags.filter { $0.generation == 7 }.map(\.number)).intersection(deliveries)
        if !isOpen { asked = [] }
        for action in actions {
            guard case .send(.acknowledge(let tag, let multiple)) = action else {
                fatalError("\(action) for an acknowledgement")
            }
            check(deliveries.contains(tag), "delivery \(tag) is not open")
            let settled: Set<UInt64> = multiple ? deliveries.filter { $0 <= tag } : [tag]
            check(settled.isSubset(of: asked), "\(settled.subtracting(asked)) were settled unasked")
            deliveries.subtract(settled)
            asked.subtract(settled)
        }
        check(asked.isEmpty, "\(asked) were not acknowledged")
    }

    mutating func rejected(_ tag: DeliveryTag, isOpen: Bool, by actions: [ChannelMachine.Action]) {
        let isKnown = isOpen && tag.generation == 7 && deliveries.contains(tag.number)
        check(actions.count == (isKnown ? 1 : 0), "\(actions) for delivery \(tag.number)")
        if isKnown { deliveries.remove(tag.number) }
    }

    func finish() {
        check(open.isEmpty, "\(open) never had an end")
    }

    private mutating func delivered(_ delivery: Delivery) {
        check(isOpened, "a delivery before anybody has heard of the channel")
        switch delivery.body {
        case .bytes(let bytes):
            check(
                bytes.count <= plan.maximumBodyBytes || bytes.isEmpty,
                "a body of \(bytes.count) bytes was held")
        case .discarded(let size):
            check(size > UInt64(plan.maximumBodyBytes), "a body of \(size) bytes was dropped")
        }
        guard delivery.consumerTag != silent || !plan.consumers.contains(where: \.noAck) else { return }
        check(deliveries.insert(delivery.tag.number).inserted, "delivery \(delivery.tag.number) came twice")
    }

    private mutating func end(_ id: UInt64) {
        check(open.remove(id) != nil, "publication \(id) has a second end, or was never sent")
    }

    private mutating func sent(_ method: ChannelMethod) {
        switch method {
        case .close:
            check(!hasSentClose, "closed twice")
            hasSentClose = true
        case .acknowledge, .reject: fatalError("\(method) without being asked")
        default: break
        }
    }
}
