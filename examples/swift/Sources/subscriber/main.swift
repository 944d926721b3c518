// Keeps a record of every event in a file, each once and in order, however often it is killed: it takes up the log where its
// file ends.
//
//     subscriber FILE        (OVERTIME_AMQP_URL names the broker)
import Foundation
import OvertimeClient

let path = CommandLine.arguments.dropFirst().first ?? "events.txt"
let url = ProcessInfo.processInfo.environment["OVERTIME_AMQP_URL"] ?? "amqp://guest:guest@127.0.0.1:5672/%2f"
let prefix = ProcessInfo.processInfo.environment["OVERTIME_AMQP_PREFIX"] ?? "overtime"

// What the file tells of the life before: a line is position, room, sequence and type.
var position: Int64?
var seen: [String: Int64] = [:]
var text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
// A line that was cut short by a crash does not count: its event comes again.
text = String(text[..<(text.lastIndex(of: "\n").map(text.index(after:)) ?? text.startIndex)])
for line in text.split(separator: "\n") {
    let fields = line.split(separator: "\t")
    position = Int64(fields[0])
    seen[String(fields[1])] = Int64(fields[2])
}
try text.write(toFile: path, atomically: true, encoding: .utf8)
let file = try FileHandle(forWritingTo: URL(filePath: path))
try file.seekToEnd()

var configuration = try Overtime.Configuration(url: url)
configuration.prefix = prefix
configuration.component = "subscriber"
let overtime = try Overtime(configuration)
let events = try await overtime.events(from: position.map { .after($0, seen: seen) } ?? .beginning)
for await notice in events {
    switch notice {
    case .event(let event):
        // An event that did not come from the log leaves the position where it was.
        position = event.position ?? position
        let line = "\(position ?? -1)\t\(event.room)\t\(event.sequence)\t\(event.type)\n"
        try file.write(contentsOf: Data(line.utf8))
    case .gap(let gap):
        FileHandle.standardError.write(Data("missed: \(gap)\n".utf8))
    }
}
