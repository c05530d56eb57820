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
                     run('CREATE TEMPORARY TABLE temporary (a INT)'); row(\"SELECT GET_LOCK('ours', 0)\"); run('SET @a = 1');
                 }}
                 echo json_encode([row('SELECT COUNT(*) FROM left_open'), row('SELECT 1 FROM temporary'), row(\"SELECT IS_USED_LOCK('ours')\"), row('SELECT @a')]);
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

#[test]
fn a_role_that_a_request_has_taken_ends_with_its_connection() {
    MARIADB.run("CREATE ROLE reader; GRANT reader TO e2e@localhost;");
    for client in CLIENTS {
        for at in ["Outboard\\snapshot(); CLIENT", "CLIENT Outboard\\snapshot();"] {
            let code = format!(
                "{} echo json_encode(row('SELECT CURRENT_ROLE()')); run('/* why */ SET ROLE reader');",
                at.replace("CLIENT", client)
            );
            for answer in ask_often(&of_mysql("rewind", 1, &code), 3) {
                assert_eq!(answer[0], Value::Null, "{at}");
            }
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
