import Glibc

/// AMQP frames by hand, for what no library would send.
final class RawPeer: Sendable {
    struct Closed: Error {}

    struct RawFrame: Sendable {
        var type: UInt8
        var channel: UInt16
        var payload: [UInt8]

        /// Class and method of a method frame.
        var method: UInt32? {
            guard type == 1, payload.count >= 4 else { return nil }
            return payload[..<4].reduce(0) { $0 << 8 | UInt32($1) }
        }
    }

    let descriptor: Int32

    init(descriptor: Int32) {
        self.descriptor = descriptor
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit {
        close(descriptor)
    }

    static func connect(port: UInt16) throws -> RawPeer {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = Self.loopback(port: port)
        let result = withUnsafeBytes(of: &address) { bytes in
            Glibc.connect(
                descriptor, bytes.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: sockaddr.self),
                socklen_t(bytes.count))
        }
        guard result == 0 else { throw Closed() }
        return RawPeer(descriptor: descriptor)
    }

    static func loopback(port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    func write(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { throw Closed() }
            rest = rest.dropFirst(count)
        }
    }

    func read(_ count: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var received = 0
        while received < count {
            let more = bytes.withUnsafeMutableBytes { buffer in
                recv(descriptor, buffer.baseAddress.unsafelyUnwrapped + received, count - received, 0)
            }
            guard more > 0 else { throw Closed() }
            received += more
        }
        return bytes
    }

    func write(type: UInt8, channel: UInt16, _ payload: [UInt8]) throws {
        try write([type] + Self.big(channel) + Self.big(UInt32(payload.count)) + payload + [0xCE])
    }

    func method(_ classID: UInt16, _ methodID: UInt16, channel: UInt16 = 0, _ arguments: [UInt8] = []) throws
    {
        try write(type: 1, channel: channel, Self.big(classID) + Self.big(methodID) + arguments)
    }

    /// The next frame that is no heartbeat.
    func frame() throws -> RawFrame {
        while true {
            let head = try read(7)
            let size = head[3...6].reduce(0) { $0 << 8 | Int($1) }
            let payload = try read(size)
            _ = try read(1)
            if head[0] == 8 { continue }
            return RawFrame(type: head[0], channel: UInt16(head[1]) << 8 | UInt16(head[2]), payload: payload)
        }
    }

    /// The next frame of this class and method; others are passed over.
    @discardableResult
    func await(_ classID: UInt16, _ methodID: UInt16) throws -> RawFrame {
        while true {
            let next = try frame()
            if next.method == UInt32(classID) << 16 | UInt32(methodID) { return next }
        }
    }

    static func big<Value: FixedWidthInteger>(_ value: Value) -> [UInt8] {
        withUnsafeBytes(of: value.bigEndian) { Array($0) }
    }

    static func short(_ text: String) -> [UInt8] { [UInt8(text.utf8.count)] + Array(text.utf8) }

    static func long(_ bytes: [UInt8]) -> [UInt8] { big(UInt32(bytes.count)) + bytes }

    /// The broker's part of a login.
    func welcome(heartbeat: UInt16 = 0) throws {
        _ = try read(8)
        try method(
            10, 10, [0, 9] + Self.long([]) + Self.long(Array("PLAIN".utf8)) + Self.long(Array("en_US".utf8)))
        try `await`(10, 11)
        try method(10, 30, Self.big(UInt16(10)) + Self.big(UInt32(131_072)) + Self.big(heartbeat))
        try `await`(10, 40)
        try method(10, 41, Self.short(""))
    }

    /// The client's part of a login, up to an open channel 1.
    func logIn(user: String, password: String, virtualHost: String) throws {
        try write(Array("AMQP".utf8) + [0, 0, 9, 1])
        try `await`(10, 10)
        let response = [0] + Array(user.utf8) + [0] + Array(password.utf8)
        try method(10, 11, Self.long([]) + Self.short("PLAIN") + Self.long(response) + Self.short("en_US"))
        try `await`(10, 30)
        try method(10, 31, Self.big(UInt16(10)) + Self.big(UInt32(131_072)) + Self.big(UInt16(0)))
        try method(10, 40, Self.short(virtualHost) + Self.short("") + [0])
        try `await`(10, 41)
        try method(20, 10, channel: 1, Self.short(""))
        try `await`(20, 11)
    }
}
