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
fn no_two_workers_have_one_connection() {
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
            let both: HashSet<String> = answers.iter().map(Value::to_string).collect();
            assert!(workers.len() > 1, "{answers:?}");
            assert_eq!(
                (connections.len(), both.len()),
                (workers.len(), workers.len()),
                "{answers:?}"
            );
        }
    }
}

#[test]
fn a_rewound_worker_keeps_its_connections() {
    for client in CLIENTS {
        for at in ["Outboard\\snapshot(); CLIENT", "CLIENT Outboard\\snapshot();"] {
            let code = format!(
                "{} echo json_encode([row('SELECT pg_backend_pid()')[0], row(\"SELECT current_setting('work_mem'), to_regclass('left_over')\"), row(\"SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory'\")]);
                 run('SET work_mem = 99999'); run('CREATE TEMPORARY TABLE left_over (a INT)'); run('SELECT pg_advisory_lock(7)'); run('BEGIN'); run('syntax error');
                 if ($_SERVER['REQUEST_URI'] === '/3') exit;",
                at.replace("CLIENT", client)
            );
            let answers = ask_often(&of_pgsql("rewind", 1, &code), 5);
            assert!(answers.iter().all(|answer| answer == &answers[0]), "{at} {answers:?}");
            assert_eq!(answers[0][1].to_string(), r#"["4MB",null]"#);
        }
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
            assert_eq!(ask(&site, "/"), first);
            POSTGRES
                .run(&format!("SELECT pg_terminate_backend({}, 5000)", first[0].as_str().unwrap()));
            let second = ask(&site, "/");
            assert!(second[0] != first[0] && second[1] == first[1], "{first} {second} {at}");
        }
    }
}

#[test]
fn a_connection_over_tcp_is_kept_and_knows_its_process() {
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
        assert!(
            answers.iter().all(|answer| answer == &answers[0] && answer[0] == answer[1]),
            "{at} {answers:?}"
        );
    }
}
