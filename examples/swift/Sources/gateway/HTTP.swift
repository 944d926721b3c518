import CHTTP
import Foundation

/// As much of HTTP as the gateway needs, by libmicrohttpd with a thread for each connection.
enum HTTP {
    struct Request {
        let method: String
        let path: String
        let query: [String: String]
    }

    enum Answer: Sendable {
        case json(UInt32, String)
        case text(UInt32, String)
        case stream(Stream)
    }

    typealias Handler = @Sendable (Request) -> Answer
    nonisolated(unsafe) private static var handler: Handler = { _ in .text(503, "not ready") }

    static func serve(port: UInt16, _ handler: @escaping Handler) -> Bool {
        Self.handler = handler
        return example_http_start(port, answer) != nil
    }

    /// From the connection's thread, which may wait, to a task.
    static func wait(_ body: @escaping @Sendable () async -> Answer) -> Answer {
        let done = DispatchSemaphore(value: 0)
        let box = Box()
        Task.detached {
            box.answer = await body()
            done.signal()
        }
        done.wait()
        return box.answer
    }

    // The semaphore orders the two accesses.
    private final class Box: @unchecked Sendable { var answer = Answer.text(500, "") }

    private static let answer: MHD_AccessHandlerCallback = {
        _, connection, url, method, _, _, uploadSize, state in
        guard let connection, let url, let method, let state, let uploadSize else { return .NO }
        // The first call comes with the headers, later ones with the body, which nothing here needs.
        if state.pointee == nil {
            state.pointee = UnsafeMutableRawPointer(bitPattern: 1)
            return .YES
        }
        if uploadSize.pointee > 0 {
            uploadSize.pointee = 0
            return .YES
        }
        var query: [String: String] = [:]
        for name in ["user", "role"] {
            if let value = MHD_lookup_connection_value(connection, .GET_ARGUMENT_KIND, name) {
                query[name] = String(cString: value)
            }
        }
        let request = Request(method: String(cString: method), path: String(cString: url), query: query)
        switch handler(request) {
        case .json(let status, let body): return queue(status, body + "\n", "application/json", connection)
        case .text(let status, let body): return queue(status, body + "\n", "text/plain", connection)
        case .stream(let stream): return queue(stream, connection)
        }
    }

    private static func queue(
        _ status: UInt32, _ body: String, _ type: String, _ connection: OpaquePointer
    ) -> MHD_Result {
        var bytes = Array(body.utf8)
        guard let response = MHD_create_response_from_buffer(bytes.count, &bytes, .RESPMEM_MUST_COPY)
        else { return .NO }
        defer { MHD_destroy_response(response) }
        MHD_add_response_header(response, "Content-Type", type)
        return MHD_queue_response(connection, status, response)
    }

    private static func queue(_ stream: Stream, _ connection: OpaquePointer) -> MHD_Result {
        let read: MHD_ContentReaderCallback = { stream, _, buffer, size in
            guard let stream, let buffer else { return -1 }
            let text = Unmanaged<Stream>.fromOpaque(stream).takeUnretainedValue().next(atMost: size)
            // MHD_CONTENT_READER_END_OF_STREAM
            guard !text.isEmpty else { return -1 }
            UnsafeMutableRawBufferPointer(start: buffer, count: size).copyBytes(from: text)
            return text.count
        }
        let free: MHD_ContentReaderFreeCallback = { stream in
            guard let stream else { return }
            Unmanaged<Stream>.fromOpaque(stream).takeRetainedValue().close()
        }
        let retained = Unmanaged.passRetained(stream).toOpaque()
        // MHD_SIZE_UNKNOWN
        guard let response = MHD_create_response_from_callback(.max, 4_096, read, retained, free) else {
            return .NO
        }
        defer { MHD_destroy_response(response) }
        MHD_add_response_header(response, "Content-Type", "text/event-stream")
        MHD_add_response_header(response, "Cache-Control", "no-store")
        return MHD_queue_response(connection, 200, response)
    }

    /// What is sent as it comes. A reader that takes nothing loses its connection once so much waits for it.
    class Stream: @unchecked Sendable {
        private let condition = NSCondition()
        private var waiting: [UInt8] = []
        private var isFinished = false
        private var onClose: @Sendable () -> Void = {}
        private static let mostWaiting = 1 << 20

        func whenClosed(_ body: @escaping @Sendable () -> Void) { condition.withLock { onClose = body } }

        func put(_ text: String) {
            condition.withLock {
                if waiting.count > Self.mostWaiting { isFinished = true } else { waiting += Array(text.utf8) }
                condition.signal()
            }
        }

        /// The session is over, or the reader too slow.
        var isOver: Bool { condition.withLock { isFinished } }

        func finish() {
            condition.withLock {
                isFinished = true
                condition.signal()
            }
        }

        /// Waits for something to send; a comment every 5 s shows that the client is still there. Empty at the end.
        func next(atMost count: Int) -> [UInt8] {
            condition.withLock {
                while waiting.isEmpty, !isFinished {
                    let isInTime = condition.wait(until: Date(timeIntervalSinceNow: 5))
                    if !isInTime, waiting.isEmpty { waiting = Array(": \n\n".utf8) }
                }
                let bytes = Array(waiting.prefix(count))
                waiting.removeFirst(bytes.count)
                return bytes
            }
        }

        fileprivate func close() { condition.withLock { onClose }() }
    }
}
