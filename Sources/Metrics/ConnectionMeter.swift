/// Whether one connection is open, and how often it was made again.
package struct ConnectionMeter: Sendable {
    package private(set) var isConnected = false
    package private(set) var reconnects: Int64 = 0
    private var wasConnected = false

    package init() {}

    package mutating func connected() {
        if wasConnected { reconnects += 1 }
        wasConnected = true
        isConnected = true
    }

    package mutating func disconnected() { isConnected = false }
}
