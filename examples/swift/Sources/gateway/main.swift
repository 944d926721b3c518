// A gateway between browsers and Overtime: events down as server-sent events, commands up by POST.
//
//     gateway [PORT]        (OVERTIME_AMQP_URL names the broker)
//
//     GET  /rooms/demo/events?user=alice       joins alice, and tells her what happens
//     POST /rooms/demo/extend?user=alice       asks for more time
//     POST /rooms/demo/destroy?user=alice      ends the session, if alice is a moderator
//
// It believes who a user says to be: a real one asks for proof first.
import Foundation
import OvertimeClient

let environment = ProcessInfo.processInfo.environment
var configuration = try Overtime.Configuration(
    url: environment["OVERTIME_AMQP_URL"] ?? "amqp://guest:guest@127.0.0.1:5672/%2f")
configuration.prefix = environment["OVERTIME_AMQP_PREFIX"] ?? "overtime"
configuration.component = "gateway"
let gateway = Gateway(try await Overtime.connect(configuration))
let port = UInt16(CommandLine.arguments.dropFirst().first ?? "8080") ?? 8080
guard HTTP.serve(port: port, { gateway.answer($0) }) else { fatalError("port \(port) cannot be listened on") }
print("http://127.0.0.1:\(port)")
fflush(nil)
while true { try await Task.sleep(for: .seconds(86_400)) }
