//! MySQL, by mysqli and by PDO.

use super::*;
use std::collections::HashSet;

/// Opens `$db` by each client.
pub(crate) const CLIENTS: [&str; 2] = [
    "mysqli_report(MYSQLI_REPORT_OFF);
     $db = new mysqli('localhost', 'e2e', 'e2e-password', 'one', 0, $socket); $db->set_charset('utf8mb4');
     function row($query) { global $db; $result = $db->query($query); return $result ? $result->fetch_row() : $db->errno; }
     function run($query) { global $db; return $db->query($query) ? 0 : $db->errno; }",
    "$db = new PDO(\"mysql:unix_socket=$socket;dbname=one;charset=utf8mb4\", 'e2e', 'e2e-password',
         [PDO::ATTR_EMULATE_PREPARES => false, PDO::ATTR_ERRMODE => PDO::ERRMODE_SILENT, PDO::ATTR_STRINGIFY_FETCHES => true]);
     function row($query) { global $db; $result = $db->query($query); return $result ? $result->fetch(PDO::FETCH_NUM) : $db->errorInfo()[1]; }
     function run($query) { global $db; return $db->exec($query) === false ? $db->errorInfo()[1] : 0; }",
];

fn socket() -> String {
    MARIADB.socket().to_string_lossy().into_owned()
}

pub(crate) fn of_mysql(isolation: &str, workers: usize, code: &str) -> Configured {
    serving(isolation, workers, &socket(), code)
}

#[test]
fn a_session_of_the_boot_is_as_the_boot_has_left_it() {
    for client in CLIENTS {
        for isolation in ISOLATIONS {
            let site = of_mysql(
                isolation,
                1,
                &format!(
                    "{client} run(\"SET SESSION sql_mode='ANSI_QUOTES'\"); run('/* why */ set @kept = 5'); run('SET no_such = 1');
                     run('USE two'); $boot = row('SELECT CONNECTION_ID()')[0];
                     Outboard\\snapshot();
                     $session = row('SELECT @@sql_mode, @kept, DATABASE(), @@character_set_client, @@autocommit, @left');
                     echo json_encode([$session, row('SELECT CONNECTION_ID()')[0] === $boot]);
                     run(\"SET SESSION sql_mode=''\"); run('SET @left = 1'); run('USE one'); run('SET NAMES latin1'); run('SET autocommit = 0');"
                ),
            );
            let expected = r#"[["ANSI_QUOTES","5","two","utf8mb4","1",null],false]"#;
            for answer in ask_often(&site, 4) {
                assert_eq!(answer.to_string(), expected, "{isolation} {client}");
            }
        }
    }
}

#[test]
fn no_two_workers_have_one_connection() {
    for client in CLIENTS {
        for isolation in ISOLATIONS {
            let site = of_mysql(
                isolation,
                4,
                &format!(
                    "{client} Outboard\\snapshot();
                     $id = row('SELECT CONNECTION_ID(), SLEEP(0.3)')[0]; echo json_encode([getmypid(), $id]);"
                ),
            );
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
        let site = of_mysql(
            "rewind",
            1,
            &format!(
                "Outboard\\snapshot();
                 {client} run('CREATE TEMPORARY TABLE IF NOT EXISTS left_over (a INT)');
                 echo json_encode([row('SELECT CONNECTION_ID()')[0], row('SELECT @left, DATABASE()')]); run('SET @left = 1'); run('USE two');"
            ),
        );
        let answers = ask_often(&site, 5);
        assert!(answers.iter().all(|answer| answer == &answers[0]), "{answers:?}");
        assert_eq!(answers[0][1].to_string(), r#"[null,"one"]"#);
    }
}

#[test]
fn what_a_request_leaves_in_its_session_is_gone() {
    for client in CLIENTS {
        for at in ["Outboard\\snapshot(); CLIENT", "CLIENT Outboard\\snapshot();"] {
            let code = format!(
                "{} if ($_SERVER['REQUEST_URI'] !== '/look') {{
                     run('CREATE TABLE IF NOT EXISTS left_open (a INT)'); run('BEGIN'); run('INSERT INTO left_open VALUES (1)');
                     run('CREATE TEMPORARY TABLE temporary (a INT)'); row(\"SELECT GET_LOCK('mine', 0)\"); run('SET @a = 1');
                 }}
                 echo json_encode([row('SELECT COUNT(*) FROM left_open'), row('SELECT 1 FROM temporary'), row(\"SELECT IS_USED_LOCK('mine')\"), row('SELECT @a')]);
                 if ($_SERVER['REQUEST_URI'] === '/exit') exit;",
                at.replace("CLIENT", client)
            );
            let site = of_mysql("rewind", 1, &code);
            for left in ["/leave", "/exit"] {
                ask(&site, left);
                assert_eq!(
                    ask(&site, "/look").to_string(),
                    r#"[["0"],1146,[null],[null]]"#,
                    "{at} {client}"
                );
            }
            MARIADB.run("DROP TABLE one.left_open");
        }
    }
}

#[test]
fn prepared_statements_of_the_boot_are_prepared_again() {
    let mysqli = "$first = $db->prepare('SELECT ? + 1'); $second = $db->prepare('SELECT CONCAT(?, CONNECTION_ID() = CONNECTION_ID())');
        $first->execute([1]); $first->get_result()->fetch_all(); Outboard\\snapshot();
        $own = $db->prepare('SELECT 7, ?'); $own->execute(['own']); $own = $own->get_result()->fetch_row();
        $second->execute(['x']); $b = $second->get_result()->fetch_row(); $first->execute([41]); $a = $first->get_result()->fetch_row();";
    let pdo = "$first = $db->prepare('SELECT ? + 1'); $second = $db->prepare('SELECT CONCAT(?, CONNECTION_ID() = CONNECTION_ID())');
        $first->execute([1]); $first->fetchAll(); Outboard\\snapshot();
        $own = $db->prepare('SELECT 7, ?'); $own->execute(['own']); $own = $own->fetchAll(PDO::FETCH_NUM)[0];
        $second->execute(['x']); $b = $second->fetchAll(PDO::FETCH_NUM)[0]; $first->execute([41]); $a = $first->fetchAll(PDO::FETCH_NUM)[0];";
    for (client, statements) in CLIENTS.into_iter().zip([mysqli, pdo]) {
        for isolation in ISOLATIONS {
            let site = of_mysql(
                isolation,
                1,
                &format!(
                    "{client} {statements} echo json_encode([\"$a[0]\", $b, \"$own[0]$own[1]\"]);"
                ),
            );
            for answer in ask_often(&site, 3) {
                assert_eq!(answer.to_string(), r#"["42",["x1"],"7own"]"#, "{isolation} {client}");
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
            ("run('LOCK TABLES mysql.user READ');", "locked something"),
            ("run('SELECT 1 INTO/* why */@a');", "set a variable"),
            (
                "run('/* why */ -- why\n # why\n  GET_LOCK');  row('DO GET_LOCK (1, 1)');",
                "locked something",
            ),
            ("row('EXECUTE IMMEDIATE \"SELECT 1\"');", "not known"),
            ("row('SELECT @a := 1');", "set a variable"),
            ("row(\"SELECT GET_LOCK('boot', 1)\");", "locked something"),
        ] {
            let site = of_mysql(
                "rewind",
                1,
                &format!(
                    "{client}\n{left} Outboard\\snapshot(); echo json_encode(row('SELECT 1'));"
                ),
            );
            for _ in 0..2 {
                assert_eq!(ask(&site, "/"), 2006, "{left} {client}");
            }
            logged(&site, &[why, "worker.php:"]);
        }
    }
}

/// What one request runs, in as many spellings as a server has for each kind of state.
const HOSTILE: &str = r#"
    SET ROLE reader; set/**/role/**/reader; /*!50000 SET ROLE reader */; /*M! SET ROLE reader */; CALL one.become();
    EXECUTE IMMEDIATE CONCAT('SET RO', 'LE reader'); BEGIN NOT ATOMIC SET ROLE reader| END; SET @q = CONCAT('SET ROLE ', 'reader');
    PREPARE p FROM @q; EXECUTE p; SELECT one.counted(); SET profiling = 1; SELECT 'SECRET'; CALL one.profiled();
    SET SESSION profiling_history_size = 100; SET rand_seed1 = 1, rand_seed2 = 1; SET @a = 1; SELECT 2 INTO @b; SELECT @c := 3;
    CREATE TEMPORARY TABLE one.temporary (a INT); CREATE TEMPORARY TABLE one.things (b INT); CREATE TEMPORARY SEQUENCE one.numbers;
    SELECT GET_LOCK('ours', 0); LOCK TABLES one.things READ; UNLOCK TABLES; FLUSH TABLES one.things WITH READ LOCK; UNLOCK TABLES;
    HANDLER one.things OPEN AS h; BEGIN; INSERT INTO one.things VALUES (); SAVEPOINT s; SELECT NEXT VALUE FOR one.sequence;
    SELECT LAST_INSERT_ID(77); SET insert_id = 9; SET timestamp = 5; SET pseudo_thread_id = 12; SET NAMES latin1; SET CHARACTER SET latin1;
    SET collation_connection = 'latin1_bin'; SET character_set_results = NULL; USE two; EXECUTE IMMEDIATE 'SET time_zone = "+09:00"';
    SET sql_mode = 'ORACLE'; SET sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'; SET autocommit = 0; SET foreign_key_checks = 0;
    SET unique_checks = 0; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; SET SESSION TRANSACTION READ ONLY; SET tx_isolation = 'SERIALIZABLE';
    SET lc_time_names = 'de_DE'; SET lc_messages = 'de_DE'; SET div_precision_increment = 9; SET group_concat_max_len = 4; SET max_sort_length = 8;
    SET default_storage_engine = MEMORY; SET max_join_size = 3; SET sql_safe_updates = 1; SET sql_big_selects = 0; SET old_mode = '';
    SET last_insert_id = 8; SET sql_warnings = 1; SET sql_notes = 0; SET max_statement_time = 30; SET wait_timeout = 99; SET optimizer_switch = 'index_merge=off';
    SET session_track_system_variables = '*'; SET @@SESSION.max_recursive_iterations = 2; SIGNAL SQLSTATE '01000' SET MESSAGE_TEXT = 'SECRET'; SELECT 1/0; no such statement;
    SELECT SQL_CALC_FOUND_ROWS 1 UNION SELECT 2 LIMIT 1; XA START 'x'; XA END 'x'; SET STATEMENT max_statement_time = 9 FOR SELECT 1"#;

/// Every variable, and what no variable tells.
const PROBE: &str = r#"$values = [];
    foreach (rows("SELECT VARIABLE_NAME, VARIABLE_VALUE FROM information_schema.SESSION_VARIABLES
        WHERE VARIABLE_NAME NOT IN ('TIMESTAMP', 'PSEUDO_THREAD_ID', 'RAND_SEED1', 'RAND_SEED2')") as [$name, $value]) { $values[$name] = $value; }
    foreach (['CURRENT_ROLE()', 'CURRENT_USER()', 'DATABASE()', 'FOUND_ROWS()', 'ROW_COUNT()', 'LAST_INSERT_ID()', '@a', '@b', '@c', '@q',
        'IS_USED_LOCK("ours") = CONNECTION_ID()', 'LASTVAL(one.sequence)', 'CONNECTION_ID() = @@pseudo_thread_id', 'ABS(@@timestamp - UNIX_TIMESTAMP(SYSDATE())) < 5', '@@in_transaction',
        '@@warning_count', '@@error_count', 'RAND() < 0.0000001', "COLLATION('a')",
        '(SELECT COUNT(*) FROM information_schema.user_variables)', '(SELECT COUNT(*) FROM information_schema.PROFILING)'] as $value) { $values[$value] = rows("SELECT $value"); }
    foreach (['SELECT 1 FROM one.temporary', 'SHOW PROFILES', 'SHOW WARNINGS', 'HANDLER h READ FIRST', 'EXECUTE p',
        'SELECT LASTVAL(one.numbers)', "SHOW OPEN TABLES WHERE In_use > 0", 'XA RECOVER'] as $query) { $values[$query] = rows($query); }"#;

#[test]
fn no_statement_of_a_request_is_noticed_by_the_next() {
    MARIADB.run(
        "CREATE ROLE reader; GRANT reader TO e2e@localhost; CREATE SEQUENCE one.sequence; CREATE TABLE one.things (a INT);
         CREATE PROCEDURE one.become() SQL SECURITY INVOKER SET ROLE reader; CREATE PROCEDURE one.profiled() SET profiling = 1;
         CREATE FUNCTION one.counted() RETURNS INT RETURN @counted := 1;",
    );
    let statements: Vec<&str> = HOSTILE.split(';').map(str::trim).collect();
    assert!(statements.len() >= 70, "{}", statements.len());
    let statements = serde_json::to_string(&statements).unwrap().replace('\'', "\\'");
    for client in CLIENTS {
        for at in ["Outboard\\snapshot(); CLIENT", "CLIENT Outboard\\snapshot();"] {
            let code = format!(
                "{} function rows($query) {{ global $db; $result = $db->query($query); return $result instanceof mysqli_result ? $result->fetch_all()
                     : ($result instanceof PDOStatement ? $result->fetchAll(PDO::FETCH_NUM) : ($db instanceof PDO ? $db->errorInfo()[1] : $db->errno)); }}
                 $id = rows('SELECT CONNECTION_ID()')[0][0]; {PROBE}
                 $at = (int) substr($_SERVER['REQUEST_URI'], 1); $statements = json_decode('{statements}');
                 if ($_SERVER['REQUEST_URI'] === '/all') foreach ($statements as $one) rows(str_replace('|', ';', $one)); else if ($at > 0) rows(str_replace('|', ';', $statements[$at - 1]));
                 echo json_encode([$id, $values]);",
                at.replace("CLIENT", client)
            );
            let site = of_mysql("rewind", 1, &code);
            let fresh = ask(&site, "/");
            let mut last = fresh.clone();
            let mut kept = 0;
            for target in (1..=HOSTILE.split(';').count()).map(|n| format!("/{n}")) {
                let now = ask(&site, &target);
                assert_eq!(now[1], fresh[1], "before {target} {at} {client}");
                kept += u32::from(now[0] == last[0]);
                last = now;
            }
            assert_eq!(ask(&site, "/all")[1], fresh[1], "{at} {client}");
            assert_eq!(ask(&site, "/")[1], fresh[1], "{at} {client}");
            assert!(kept > 60, "{kept} of the connections were kept");
        }
    }
}

#[test]
fn words_in_values_of_the_boot_s_statements_mean_nothing() {
    for client in CLIENTS {
        let code = format!(
            r#"{client} run('CREATE TABLE IF NOT EXISTS words (`lock` TEXT, temporary_column INT)');
             run('INSERT INTO words (`lock`) VALUES ("a := b; CREATE TEMPORARY TABLE x; SET @a = 1", )');
             run("INSERT INTO words (`lock`) VALUES ('it\'s; LOCK TABLES x; GET_LOCK(1)'), ('x'';SET @b = 1')");
             row('SELECT temporary_column, "INTO @x" FROM words'); run('-- SET @c = 1'); run('DROP TABLE words');
             Outboard\snapshot(); echo json_encode(row('SELECT @a, @b, @c'));"#
        );
        for answer in ask_often(&of_mysql("rewind", 1, &code), 2) {
            assert_eq!(answer.to_string(), "[null,null,null]");
        }
    }
}

#[test]
fn a_boot_as_wordpress_has_it_is_set_up_again() {
    let code = "mysqli_report(MYSQLI_REPORT_OFF); $db = mysqli_init(); mysqli_real_connect($db, 'localhost', 'e2e', 'e2e-password', null, 0, $socket, 0);
        mysqli_query($db, \"SET NAMES 'utf8mb4' COLLATE 'utf8mb4_unicode_520_ci'\"); $modes = mysqli_fetch_row(mysqli_query($db, 'SELECT @@SESSION.sql_mode'));
        mysqli_query($db, \"SET SESSION sql_mode='NO_ENGINE_SUBSTITUTION'\"); mysqli_select_db($db, 'two');
        Outboard\\snapshot();
        echo json_encode([mysqli_fetch_row(mysqli_query($db, 'SELECT @@sql_mode, DATABASE(), @@collation_connection')), mysqli_fetch_row(mysqli_query($db, 'SELECT CONNECTION_ID()'))[0], mysqli_ping($db), mysqli_get_server_info($db) !== '']);
        mysqli_select_db($db, 'one'); mysqli_query($db, \"SET SESSION sql_mode=''\");";
    let answers = ask_often(&of_mysql("rewind", 1, code), 4);
    assert!(answers.iter().all(|answer| answer == &answers[0]), "{answers:?}");
    let session = r#"["NO_ENGINE_SUBSTITUTION","two","utf8mb4_unicode_520_ci"]"#;
    assert_eq!(answers[0][0].to_string(), session);
}

#[test]
fn coroutines_of_a_request_have_a_connection_each() {
    for (open, query) in [
        (
            "new mysqli('localhost', 'e2e', 'e2e-password', 'one', 0, $socket)",
            "$db->query($text)->fetch_row()[0]",
        ),
        (
            "new PDO(\"mysql:unix_socket=$socket;dbname=one\", 'e2e', 'e2e-password')",
            "$db->query($text)->fetchColumn()",
        ),
    ] {
        let code = format!(
            "$boot = [{open}, {open}]; $use = function ($db) {{ $text = 'SELECT CONNECTION_ID(), SLEEP(0.2)'; return (string) {query}; }};
             Outboard\\snapshot(); $begun = microtime(true);
             $ids = Outboard\\concurrently([fn () => $use($boot[0]), fn () => $use($boot[1]), fn () => $use({open}), fn () => $use({open})]);
             echo json_encode([count(array_unique($ids)), microtime(true) - $begun < 0.7, error_reporting() > 0, $ids]);"
        );
        let answers = ask_often(&of_mysql("rewind", 1, &code), 3);
        for answer in &answers {
            assert_eq!(
                (&answer[0], &answer[1], &answer[2]),
                (&4.into(), &true.into(), &true.into()),
                "{answers:?}"
            );
        }
        let sorted = |answer: &Value| {
            let mut ids: Vec<String> =
                answer[3].as_array().unwrap().iter().map(Value::to_string).collect();
            ids.sort();
            ids
        };
        assert!(answers.iter().all(|answer| sorted(answer) == sorted(&answers[0])), "{answers:?}");
    }
}
