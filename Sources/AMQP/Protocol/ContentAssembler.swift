/// Puts a message together from its method, header and body frames.
///
/// The library's own reader loses frames of other channels, so frames come here raw. A peer's sizes are believed
/// only as far as the bytes that have arrived: nothing is allocated on the strength of an announcement.
struct ContentAssembler: Sendable {
    /// What a content belongs to.
    enum Method: Hashable, Sendable {
        case deliver(DeliverMethod)
        case returned(ReturnMethod)
    }

    struct Content: Hashable, Sendable {
        var method: Method
        var properties: Properties
        var body: Body
    }

    private enum State: Sendable {
        case idle
        case header(Method)
        case body(Method, Properties, size: UInt64, isHeld: Bool, received: UInt64, bytes: [UInt8])
    }

    private let maximumBodyBytes: UInt64
    private var state = State.idle

    init(maximumBodyBytes: Int) {
        self.maximumBodyBytes = UInt64(max(0, maximumBodyBytes))
    }

    /// Whether a content has begun and is not complete, so that no method may come on its channel.
    var isInsideContent: Bool {
        if case .idle = state { return false }
        return true
    }

    mutating func begin(_ method: Method) throws(AMQPError) {
        guard case .idle = state else { throw .protocolViolation("a message began inside another") }
        state = .header(method)
    }

    /// The content, if it has no body and so is complete with its header. A body that is not small and goes beyond the
    /// budget is dropped as it comes.
    mutating func header(
        bodySize: UInt64, properties: Properties, largeBodyBudget: Int = .max
    ) throws(AMQPError) -> Content? {
        guard case .header(let method) = state else {
            throw .protocolViolation("a content header came without a message")
        }
        state = .idle
        guard bodySize > 0 else {
            return Content(method: method, properties: properties, body: .bytes([]))
        }
        let isAffordable =
            bodySize <= UInt64(ChannelPlan.smallBodyBytes) || bodySize <= UInt64(max(0, largeBodyBudget))
        state = .body(
            method, properties, size: bodySize, isHeld: bodySize <= maximumBodyBytes && isAffordable,
            received: 0,
            bytes: [])
        return nil
    }

    mutating func body(_ fragment: [UInt8]) throws(AMQPError) -> Content? {
        guard case .body = state,
            // Taken out, so that `bytes` is the array's only owner and grows in place.
            case .body(let method, let properties, let size, let isHeld, let received, var bytes) = exchange(
                &state, with: .idle)
        else { throw .protocolViolation("a content body came without a header") }
        let (sum, overflow) = received.addingReportingOverflow(UInt64(fragment.count))
        guard !overflow, sum <= size else {
            throw .protocolViolation("a body is larger than its header announced")
        }
        if isHeld {
            if bytes.isEmpty {
                bytes = fragment
            } else {
                bytes.append(contentsOf: fragment)
            }
        }
        guard sum < size else {
            return Content(
                method: method, properties: properties, body: isHeld ? .bytes(bytes) : .discarded(size: size))
        }
        state = .body(method, properties, size: size, isHeld: isHeld, received: sum, bytes: bytes)
        return nil
    }
}
