/// Which publications of one channel generation still lack an outcome.
///
/// The broker numbers what it receives from 1 and settles by number, in any order, alone or "all up to". Four ends
/// are kept apart, because each calls for something else:
///
/// | End | What happened | What the caller does |
/// | --- | --- | --- |
/// | confirmed | acknowledged | done |
/// | refused | nack | later again |
/// | returned | handed back, then acknowledged | nobody was there |
/// | unknown | the channel ended first | publish again with the same id |
///
/// A returned message carries no number. It is recognised as the oldest mandatory publication still open with the
/// same message id, exchange and routing key. Where message ids are missing or not unique, the order decides: returns
/// come in the order of publishing, so among equals only the oldest can be meant.
struct ConfirmLedger: Sendable {
    struct Outcomes: Hashable, Sendable {
        struct Return: Hashable, Sendable {
            var id: UInt64
            var code: UInt16
            var text: String
        }

        var confirmed: [UInt64] = []
        var refused: [UInt64] = []
        var returned: [Return] = []
    }

    private struct Entry: Sendable {
        var id: UInt64
        var isOpen = true
        /// Only of mandatory ones; the others cannot come back.
        var address: Address?
        var handedBack: ReturnMethod?
    }

    private struct Address: Equatable, Sendable {
        var messageID: ShortString?
        var exchange: ShortString
        var routingKey: ShortString
    }

    /// Open and settled entries; the first one's number is `firstTag`.
    private var entries: [Entry] = []
    private var head = 0
    private var firstTag: UInt64 = 1
    private(set) var openCount = 0

    /// To be called for each publication in the order of sending.
    mutating func published(_ publication: Publication) {
        var entry = Entry(id: publication.id)
        if publication.mandatory {
            entry.address = Address(
                messageID: publication.properties.messageID, exchange: publication.exchange,
                routingKey: publication.routingKey)
        }
        entries.append(entry)
        openCount += 1
    }

    /// Notes a returned message; its end is told when its acknowledgement follows.
    mutating func returned(_ method: ReturnMethod, messageID: ShortString?) {
        let address = Address(messageID: messageID, exchange: method.exchange, routingKey: method.routingKey)
        let index = entries[head...].firstIndex { entry in
            entry.isOpen && entry.handedBack == nil && entry.address == address
        }
        if let index { entries[index].handedBack = method }
    }

    /// The outcomes that a confirm frame settles. A number settled before is passed over.
    ///
    /// A number that was never given out is a protocol violation: counting it for anything could call a lost message
    /// confirmed.
    mutating func settle(tag: UInt64, multiple: Bool, isAck: Bool) throws(AMQPError) -> Outcomes {
        let lastTag = firstTag + UInt64(entries.count - head) - 1
        // Number 0 with "multiple" means everything so far.
        let last = tag == 0 && multiple ? lastTag : tag
        guard last <= lastTag, tag > 0 || multiple else {
            throw .protocolViolation("publication \(tag) was confirmed but only \(lastTag) were sent")
        }
        var outcomes = Outcomes()
        if last >= firstTag {
            let end = head + Int(last - firstTag)
            for index in (multiple ? head : end)..<(end + 1) {
                close(index, isAck: isAck, into: &outcomes)
            }
        }
        dropSettledPrefix()
        return outcomes
    }

    /// Ends the generation: the publications without an outcome, in the order of sending.
    mutating func takeUnknown() -> [UInt64] {
        let unknown = entries[head...].filter(\.isOpen).map(\.id)
        self = ConfirmLedger()
        return unknown
    }

    private mutating func close(_ index: Int, isAck: Bool, into outcomes: inout Outcomes) {
        guard entries[index].isOpen else { return }
        entries[index].isOpen = false
        openCount -= 1
        let id = entries[index].id
        guard isAck else {
            outcomes.refused.append(id)
            return
        }
        if let method = entries[index].handedBack {
            outcomes.returned.append(.init(id: id, code: method.code, text: method.text))
        } else {
            outcomes.confirmed.append(id)
        }
    }

    private mutating func dropSettledPrefix() {
        while head < entries.count, !entries[head].isOpen {
            head += 1
            firstTag += 1
        }
        if head == entries.count {
            entries.removeAll(keepingCapacity: true)
            head = 0
        } else if head > 1024, head > entries.count / 2 {
            entries.removeFirst(head)
            head = 0
        }
    }
}
