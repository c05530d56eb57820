//! PostgreSQL, by its extension and by PDO.

use super::*;
use std::collections::HashSet;

/// Opens `$db` by each client.
const CLIENTS: [&str; 2] = [
    "$db = pg_connect(\"host=$socket user=e2e password=e2e-password dbname=e2e\");
     function row($query) { global $db; $result = @pg_query($db, $query); return $result ? pg_fetch_row($result) : null; }
     function run($query) { global $db; return @pg_query($db, $query) !== false; }",
    "$db = new PDO(\"pgsql:host=$socket;dbname=e2e\", 'e2e', 'e2e-password',
         [PDO::ATTR_ERRMODE => PDO::ERRMODE_SILENT, PDO::ATTR_STRINGIFY_FETCHES => true]);
     function row($query) { global $db; $result = $db->query($query); return $result ? $result->fetch(PDO::FETCH_NUM) : null; }
     function run($query) { global $db; return $db->exec($query) !== false; }",
];

fn of_pgsql(isolation: &str, workers: usize, code: &str) -> Configured {
    let folder = POSTGRES.socket().parent().unwrap().to_string_lossy().into_owned();
    serving(isolation, workers, &folder, code)
}

#[test]
fn a_session_of_the_boot_is_as_the_boot_has_left_it() {
    for client in CLIENTS {
        for isolation in ISOLATIONS {
            let code = format!(
                "{client} run(\"SET search_path = 'other, public'\"); run(\"SET TIME ZONE 'Asia/Tokyo'\"); run(\"SET my.own = 'x''y'\");
                 run('SET no_such = 1'); run('LISTEN \"Channel\"'); run('PREPARE own (int) AS SELECT $1 + 1'); $boot = row('SELECT pg_backend_pid()')[0];
                 Outboard\\snapshot();
                 echo json_encode([row(\"SELECT current_setting('search_path'), current_setting('TimeZone'), current_setting('my.own'), (SELECT string_agg(c, ',') FROM pg_listening_channels() c)\"),
                     row('EXECUTE own(41)'), row('SELECT pg_backend_pid()')[0] === $boot, row(\"SELECT current_setting('work_mem')\")]);
                 run('SET work_mem = 99999'); run('RESET search_path'); run('UNLISTEN *'); run('DEALLOCATE ALL'); run('BEGIN');"
            );
            let expected =
                r#"[["\"other, public\"","Asia/Tokyo","x'y","Channel"],["42"],false,["4MB"]]"#;
            for answer in ask_often(&of_pgsql(isolation, 1, &code), 4) {
                assert_eq!(answer.to_string(), expected, "{isolation} {client}");
            }
        }
    }
}

#[test]
fn no_two_requests_have_one_connection() {
    for client in CLIENTS {
        for isolation in ISOLATIONS {
            let code = format!(
                "{client} Outboard\\snapshot();
                 $id = row('SELECT pg_backend_pid(), pg_sleep(0.3)')[0]; echo json_encode([getmypid(), $id]);"
            );
            let site = of_pgsql(isolation, 4, &code);
            let answers: Vec<Value> = std::thread::scope(|scope| {
                let ask = |_| scope.spawn(|| ask_often(&site, 3));
                let asking: Vec<_> = (0..4).map(ask).collect();
                asking.into_iter().flat_map(|one| one.join().unwrap()).collect()
            });
            let workers: HashSet<String> = answers.iter().map(|one| one[0].to_string()).collect();
            let connections: HashSet<String> =
                answers.iter().map(|one| one[1].to_string()).collect();
            assert!(workers.len() > 1, "{answers:?}");
            assert_eq!(connections.len(), answers.len(), "{answers:?}");
        }
    }
}

/// What one request runs.
const HOSTILE: &str = "
    SELECT setseed(0.5); SET app.tenant = 'a'; SELECT set_config('app.tenant', 'b', false); SELECT set_config('app.' || 'tenant', 'c', true);
    DO $$ BEGIN PERFORM set_config('app.tenant', 'd', false)| END $$; SELECT remembered(); SELECT query_to_xml('SELECT set_con' || 'fig(''app.tenant'', ''e'', false)', true, true, '');
    SET SESSION app.tenant TO 'f'; BEGIN; SET LOCAL app.tenant = 'g'; COMMIT; PREPARE p AS SELECT set_config('app.tenant', 'h', false); EXECUTE p;
    SET ROLE pg_monitor; SET SESSION AUTHORIZATION pg_monitor; SELECT set_config('role', 'pg_monitor', false); RESET ROLE; SET work_mem = '9MB';
    SET search_path = 'other'; SET TIME ZONE 'Asia/Tokyo'; SET NAMES 'LATIN1'; SET DateStyle = 'German'; SET IntervalStyle = 'iso_8601'; SET bytea_output = 'escape';
    SET application_name = 'SECRET'; SET default_transaction_read_only = on; SET default_transaction_isolation = 'serializable'; SET standard_conforming_strings = off;
    SET extra_float_digits = 0; SET lc_messages = 'C'; SET statement_timeout = 30000; SET row_security = off; SET session_replication_role = 'replica'; SET enable_seqscan = off;
    SET plan_cache_mode = 'force_generic_plan'; CREATE TEMPORARY TABLE temporary (a INT); CREATE TEMPORARY SEQUENCE numbers; SELECT nextval('sequence'); LISTEN channel; NOTIFY channel;
    SELECT pg_advisory_lock(7); SELECT pg_try_advisory_lock_shared(8); BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT 1; BEGIN; LOCK TABLE things; BEGIN; INSERT INTO things VALUES (1);
    SAVEPOINT s; no such statement; LOAD 'plpgsql'; CREATE TEMPORARY VIEW seen AS SELECT 1; COPY things FROM STDIN";

const PROBE: &str = r#"$values = rows("SELECT name, setting FROM pg_settings ORDER BY name");
    foreach (["current_setting('app.tenant', true) IS NULL", 'current_user', 'session_user', "to_regclass('temporary')", "to_regclass('numbers')", "to_regclass('seen')",
        '(SELECT count(*) FROM pg_prepared_statements)', '(SELECT count(*) FROM pg_cursors)', '(SELECT count(*) FROM pg_listening_channels())', 'lastval()',
        "(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())"] as $value) { $values[] = rows("SELECT $value"); }
    $values[] = ['random() = (SELECT a FROM drawn)', rows('SELECT count(*) FROM drawn WHERE a = random()')];"#;

#[test]
fn no_statement_of_a_request_is_noticed_by_the_next() {
    POSTGRES.run("CREATE SEQUENCE sequence; CREATE TABLE things (a INT); CREATE FUNCTION remembered() RETURNS void LANGUAGE plpgsql AS $$ BEGIN SET app.tenant = 'r'; END $$;");
    POSTGRES.run(
        "CREATE TABLE drawn AS SELECT random() AS a FROM (SELECT setseed(0.5) OFFSET 0) seeded",
    );
    let statements: Vec<&str> = HOSTILE.split(';').map(str::trim).collect();
    assert!(statements.len() >= 40);
    let statements = serde_json::to_string(&statements).unwrap().replace('\'', "\\'");
    for client in CLIENTS {
        for at in ["Outboard\\snapshot(); CLIENT", "CLIENT Outboard\\snapshot();"] {
            let code = format!(
                "{} function rows($query) {{ global $db; $result = $db instanceof PDO ? $db->query($query) : @pg_query($db, $query);
                     return $result === false ? null : ($db instanceof PDO ? $result->fetchAll(PDO::FETCH_NUM) : pg_fetch_all($result, PGSQL_NUM)); }}
                 $id = rows('SELECT pg_backend_pid()'); {PROBE}
                 $at = (int) substr($_SERVER['REQUEST_URI'], 1); $statements = json_decode('{statements}');
                 if ($_SERVER['REQUEST_URI'] === '/all') foreach ($statements as $one) run(str_replace('|', ';', $one)); else if ($at > 0) run(str_replace('|', ';', $statements[$at - 1]));
                 echo json_encode([$id, $values]);",
                at.replace("CLIENT", client)
            );
            let site = of_pgsql("rewind", 1, &code);
            let fresh = ask(&site, "/");
            let last = HOSTILE.split(';').count();
            for target in (1..=last).map(|n| format!("/{n}")).chain(["/all".into(), "/".into()]) {
                assert_eq!(ask(&site, &target)[1], fresh[1], "before {target} {at} {client}");
            }
        }
    }
}

/// libpq says again and again that it waits for data, and PHP reads all that it says.
#[test]
fn a_copy_that_was_not_finished_ends_with_its_connection() {
    for client in CLIENTS {
        let code = format!(
            "Outboard\\snapshot(); {client} run('CREATE TABLE IF NOT EXISTS copied (a INT)'); run('COPY copied FROM STDIN'); unset($db); echo getmypid();"
        );
        let answers = ask_often(&of_pgsql("rewind", 1, &code), 3);
        assert!(answers.iter().all(|answer| answer == &answers[0]), "{client} {answers:?}");
    }
}

#[test]
fn prepared_statements_of_the_boot_are_prepared_again() {
    for (client, statement) in CLIENTS.into_iter().zip([
        "pg_prepare($db, 'plus', 'SELECT $1::int + 1'); pg_execute($db, 'plus', [1]); $again = fn ($n) => pg_fetch_row(pg_execute($db, 'plus', [$n]))[0];",
        "$plus = $db->prepare('SELECT ?::int + 1'); $plus->execute([1]); $plus->fetchAll(); $again = function ($n) use ($plus) { $plus->execute([$n]); return $plus->fetchAll(PDO::FETCH_NUM)[0][0]; };",
    ]) {
        for isolation in ISOLATIONS {
            let code = format!("{client} {statement} Outboard\\snapshot(); echo json_encode([(string) $again(41), (string) $again(1)]);");
            for answer in ask_often(&of_pgsql(isolation, 1, &code), 3) {
                assert_eq!(answer.to_string(), r#"["42","2"]"#, "{isolation} {client}");
            }
        }
    }
}

#[test]
fn a_session_that_cannot_be_set_up_again_is_refused_with_its_place() {
    for client in CLIENTS {
        for (left, why) in [
            ("run('BEGIN');", "open transaction"),
            ("run('CREATE TEMPORARY TABLE gone (a INT)');", "temporary table"),
            ("run('SELECT pg_advisory_lock(1)');", "locked something"),
            ("run('SET ROLE pg_monitor');", "its role"),
        ] {
            let code = format!(
                "{client}\n{left} Outboard\\snapshot(); echo json_encode(row('SELECT 1'));"
            );
            let site = of_pgsql("rewind", 1, &code);
            assert_eq!(ask_often(&site, 2), [Value::Null, Value::Null], "{left} {client}");
            logged(&site, &[why, "worker.php:"]);
        }
    }
}

#[test]
fn a_connection_that_the_server_has_closed_is_opened_again() {
    for client in CLIENTS {
        for at in [
            "Outboard\\snapshot(); CLIENT",
            "CLIENT run(\"SET work_mem = '1MB'\"); Outboard\\snapshot();",
        ] {
            let code = format!(
                "{} echo json_encode(row(\"SELECT pg_backend_pid(), current_setting('work_mem')\"));",
                at.replace("CLIENT", client)
            );
            let site = of_pgsql("rewind", 1, &code);
            let first = ask(&site, "/");
            POSTGRES
                .run(&format!("SELECT pg_terminate_backend({}, 5000)", first[0].as_str().unwrap()));
            let second = ask(&site, "/");
            assert!(second[0] != first[0] && second[1] == first[1], "{first} {second} {at}");
        }
    }
}

#[test]
fn a_connection_over_tcp_knows_its_process() {
    let gate = Gate::before(&POSTGRES.socket());
    let client = format!(
        "$db = pg_connect('host=127.0.0.1 port={} user=e2e password=e2e-password dbname=e2e');",
        gate.address().port()
    );
    for at in ["Outboard\\snapshot(); CLIENT", "CLIENT Outboard\\snapshot();"] {
        let code = format!(
            "{} echo json_encode([pg_get_pid($db), (int) pg_fetch_result(pg_query($db, 'SELECT pg_backend_pid()'), 0)]);",
            at.replace("CLIENT", &client)
        );
        let answers = ask_often(&of_pgsql("rewind", 1, &code), 4);
        assert!(answers.iter().all(|answer| answer[0] == answer[1]), "{at} {answers:?}");
    }
}
