import Glibc
import Service

/// What the program says on its terminal or into a pipe.
enum Output {
    static let isTerminal = ProcessEnvironment.isTerminal(1)
    private static let colours = ProcessEnvironment.wantsColour(
        1, environment: ProcessEnvironment.variables())

    enum Colour: String {
        case red = "31"
        case green = "32"
        case yellow = "33"
        case blue = "34"
        case cyan = "36"
        case dim = "2"
        case bold = "1"
    }

    /// One line on standard output. A reader that has gone away (`| head`) ends the program, as it should.
    static func line(_ text: String) { write(Array((text + "\n").utf8), to: 1) }

    /// Bytes as they are, and a line's end.
    static func line(_ bytes: [UInt8]) { write(bytes + [UInt8(ascii: "\n")], to: 1) }

    /// One line on standard error.
    static func error(_ text: String) { write(Array(("overtime: " + text + "\n").utf8), to: 2) }

    static func colour(_ text: String, _ colour: Colour) -> String {
        colours ? "\u{1B}[\(colour.rawValue)m\(text)\u{1B}[0m" : text
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 {
                let reason = errno
                if reason == EINTR || (reason == EAGAIN && isWritable(descriptor)) { continue }
                if descriptor == 1 { lost(reason) }
                return
            }
            rest = rest.dropFirst(count)
        }
    }

    /// Waits where somebody has set the descriptor not to.
    private static func isWritable(_ descriptor: Int32) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        return poll(&entry, 1, -1) > 0
    }

    private static func lost(_ reason: Int32) -> Never {
        if reason == EPIPE { ProcessExit.ok.endNow() }
        error("standard output cannot be written: \(String(cString: strerror(reason)))")
        ProcessExit.output.endNow()
    }
}
