/// What a connection is set to, and what a server must guarantee before anything is entrusted to it.
enum PostgresSession {
    /// Settings that the server knows; an older one lacks some.
    ///
    /// Time limits: a statement that hangs, a lock that is not given, a worker that is frozen within its transaction and a
    /// client that is gone all end, so that nobody's locks stay. Plans: made once for a statement, and along the
    /// indexes, since statistics of tables that were empty a minute ago would say otherwise.
    static let settings = """
        SELECT set_config(s.name, v.value, false) FROM (VALUES
            ('statement_timeout', '30s'), ('lock_timeout', '10s'), ('idle_in_transaction_session_timeout', '5s'),
            ('client_connection_check_interval', '2s'), ('default_transaction_isolation', 'read committed'),
            ('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
                ELSE current_setting('synchronous_commit') END),
            ('search_path', '\(PostgresSchema.name)'), ('plan_cache_mode', 'force_generic_plan'), ('jit', 'off'),
            ('enable_seqscan', 'off'), ('enable_hashjoin', 'off'), ('enable_mergejoin', 'off'), ('enable_material', 'off')
        ) AS v(name, value) JOIN pg_settings s ON s.name = v.name
        """

    static let guarantees = """
        SELECT current_setting('server_encoding'), current_setting('fsync'), current_setting('full_page_writes'),
            current_setting('server_version_num')::integer
        """

    static let refusal = "the server has "
    private static let oldestVersion: Int64 = 120_000

    /// Why nothing may be entrusted to this server; nil where it may.
    static func defect(in answer: Answer) -> String? {
        let encoding = answer.text(0, 0) ?? "none"
        if encoding != "UTF8" {
            return "\(refusal)encoding \(encoding): make the database with ENCODING UTF8"
        }
        for (column, name) in [(Int32(1), "fsync"), (2, "full_page_writes")]
        where answer.text(0, column) != "on" {
            return "\(refusal)\(name) = off: commits would be lost in a crash; set it to on"
        }
        let version = answer.integer(0, 3)
        if version < oldestVersion { return "\(refusal)version \(version / 10_000): 12 or later is needed" }
        return nil
    }
}
