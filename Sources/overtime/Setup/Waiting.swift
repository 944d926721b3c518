import Service

/// From a task to a plain function: the program's commands run on the main thread, which may wait.
enum Waiting {
    static func forValue<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) -> Value {
        let mailbox = Mailbox<Value>()
        Task.detached { mailbox.put(await body()) }
        while true {
            if let value = mailbox.take(timeoutMilliseconds: nil).first { return value }
        }
    }
}
