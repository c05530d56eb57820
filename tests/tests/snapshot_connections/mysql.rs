//! MySQL, by mysqli and by PDO.

use super::*;
use outboard_e2e::eventually;
use std::collections::HashSet;

/// Opens `$db` by each client.
const CLIENTS: [&str; 2] = [
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

fn of_mysql(isolation: &str, workers: usize, code: &str) -> Configured {
    serving(isolation, workers, &socket(), code)
}

/// Ends a connection, and returns when it has gone.
fn kill(id: &str) {
    MARIADB.run(&format!("KILL {id}"));
    let is_there = format!("SELECT id FROM information_schema.processlist WHERE id = {id}");
    eventually("the connection ends", || MARIADB.run(&is_there).is_empty());
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
            let output = site.child().output();
            assert!(output.contains(why), "{left}: {output}");
            assert!(output.contains("worker.php:"), "{left}: {output}");
        }
    }
}

#[test]
fn a_connection_that_the_server_has_closed_is_opened_again() {
    for client in CLIENTS {
        for at in
            ["Outboard\\snapshot(); CLIENT", "CLIENT run('SET @a = 3'); Outboard\\snapshot();"]
        {
            let code = format!(
                "{} echo json_encode(row('SELECT CONNECTION_ID(), @a'));",
                at.replace("CLIENT", client)
            );
            let site = of_mysql("rewind", 1, &code);
            let first = ask(&site, "/");
            assert_eq!(ask(&site, "/"), first);
            kill(first[0].as_str().unwrap());
            let second = ask(&site, "/");
            assert!(second[0] != first[0] && second[1] == first[1], "{first} {second} {at}");
        }
    }
}

#[test]
fn a_database_that_is_down_is_an_error_and_one_that_is_back_is_used() {
    let mut database = MariaDb::start();
    database.create("one");
    let socket = database.socket().to_string_lossy().into_owned();
    let client = CLIENTS[0];
    let boot = serving(
        "rewind",
        1,
        &socket,
        &format!("{client} Outboard\\snapshot(); echo json_encode(row('SELECT 1'));"),
    );
    let request = serving(
        "rewind",
        1,
        &socket,
        &format!(
            "Outboard\\snapshot(); try {{ {client} }} catch (Error $error) {{ echo 0; exit; }} echo json_encode(row('SELECT 1'));"
        ),
    );
    for is_up in [true, false, true] {
        match is_up {
            false => database.stop(),
            true if ask(&request, "/") == 0 => database.start_again(),
            true => {}
        }
        for _ in 0..3 {
            let (of_boot, of_request) = (ask(&boot, "/"), ask(&request, "/"));
            if is_up {
                assert_eq!((of_boot[0].as_str(), of_request[0].as_str()), (Some("1"), Some("1")));
            } else {
                assert_eq!((of_boot, of_request), (2006.into(), 0.into()));
            }
        }
    }
    assert!(boot.child().output().contains("cannot be opened again"), "{}", boot.child().output());
}

#[test]
fn a_login_that_has_become_impossible_is_an_error() {
    MARIADB.run("CREATE USER leaving@localhost IDENTIFIED BY 'e2e-password'; GRANT ALL ON one.* TO leaving@localhost;");
    for client in CLIENTS {
        let client = client.replace("'e2e'", "'leaving'");
        let site = of_mysql(
            "rewind",
            1,
            &format!("{client} Outboard\\snapshot(); echo json_encode(row('SELECT 1'));"),
        );
        assert_eq!(ask(&site, "/")[0], "1");
        MARIADB.run("ALTER USER leaving@localhost IDENTIFIED BY 'another'");
        let id =
            MARIADB.run("SELECT id FROM information_schema.processlist WHERE user = 'leaving'");
        kill(id.trim());
        assert_eq!(ask(&site, "/"), 2006);
        assert!(site.child().output().contains("Access denied"), "{}", site.child().output());
        MARIADB.run("ALTER USER leaving@localhost IDENTIFIED BY 'e2e-password'");
        assert_eq!(ask(&site, "/")[0], "1");
    }
}

#[test]
fn an_encrypted_connection_is_opened_for_each_request() {
    let gate = Gate::before(MARIADB.socket());
    MARIADB.run("CREATE USER secret@localhost IDENTIFIED BY 'e2e-password' REQUIRE SSL; GRANT ALL ON one.* TO secret@localhost;");
    let port = gate.address().port();
    let mysqli = format!(
        "$db = mysqli_init(); $db->real_connect('127.0.0.1', 'secret', 'e2e-password', 'one', {port}, null, MYSQLI_CLIENT_SSL | MYSQLI_CLIENT_SSL_DONT_VERIFY_SERVER_CERT);
         function row($query) {{ global $db; $result = $db->query($query); return $result ? $result->fetch_row() : $db->errno; }}"
    );
    for at in
        ["Outboard\\snapshot(); CLIENT", "CLIENT $db->query('SET @a = 3'); Outboard\\snapshot();"]
    {
        for isolation in ISOLATIONS {
            let code = format!(
                "{} echo json_encode([row('SELECT @a, @b'), row(\"SHOW STATUS LIKE 'Ssl_version'\")[1], row('SELECT CONNECTION_ID()')[0]]); $db->query('SET @b = 1');",
                at.replace("CLIENT", &mysqli)
            );
            let answers = ask_often(&of_mysql(isolation, 1, &code), 3);
            let ids: HashSet<String> = answers.iter().map(|answer| answer[2].to_string()).collect();
            assert_eq!(ids.len(), 3, "{answers:?}");
            for answer in answers {
                assert_eq!(answer[0][1], Value::Null, "{answer}");
                assert_eq!(answer[0][0].is_null(), at.starts_with("Outboard"), "{answer}");
                assert!(
                    answer[1].as_str().is_some_and(|version| version.starts_with("TLS")),
                    "{answer}"
                );
            }
        }
    }
}

#[test]
fn a_connection_over_tcp_and_one_to_another_server_are_kept_apart() {
    let other = MariaDb::start();
    other.create("one");
    let gates = [Gate::before(MARIADB.socket()), Gate::before(other.socket())];
    let ports = gates.each_ref().map(|gate| gate.address().port());
    for at in ["Outboard\\snapshot(); CLIENT", "CLIENT Outboard\\snapshot();"] {
        let clients = ports.map(|port| {
            format!("new PDO('mysql:host=127.0.0.1;port={port};dbname=one', 'e2e', 'e2e-password')")
        });
        let both = format!("$a = {}; $b = {};", clients[0], clients[1]);
        let code = format!(
            "{} $of = fn ($db) => $db->query('SELECT CONNECTION_ID(), @@pid_file')->fetch(PDO::FETCH_NUM); echo json_encode([$of($a), $of($b)]);",
            at.replace("CLIENT", &both)
        );
        let answers = ask_often(&of_mysql("rewind", 1, &code), 4);
        assert!(answers.iter().all(|answer| answer == &answers[0]), "{answers:?}");
        assert_ne!(answers[0][0][1], answers[0][1][1], "{answers:?}");
    }
}

#[test]
fn persistent_connections_are_kept_as_others() {
    for (at, kept) in
        [("Outboard\\snapshot(); CLIENT", true), ("CLIENT Outboard\\snapshot();", true)]
    {
        for client in [
            "$db = new mysqli('p:localhost', 'e2e', 'e2e-password', 'one', 0, $socket);",
            "$db = new PDO(\"mysql:unix_socket=$socket;dbname=one\", 'e2e', 'e2e-password', [PDO::ATTR_PERSISTENT => true]);",
        ] {
            let code = format!(
                "{} $row = $db->query('SELECT CONNECTION_ID(), @left'); $row = $row instanceof PDOStatement ? $row->fetch(PDO::FETCH_NUM) : $row->fetch_row();
                 echo json_encode([(string) $row[0], $row[1]]); $db->query('SET @left = 1');",
                at.replace("CLIENT", client)
            );
            let answers = ask_often(&of_mysql("rewind", 1, &code), 4);
            assert_eq!(
                answers.iter().all(|answer| answer == &answers[0]),
                kept,
                "{client} {answers:?}"
            );
            assert_eq!(answers[3][1], Value::Null);
        }
    }
}

#[test]
fn commands_for_each_new_connection_run_for_one_that_is_kept() {
    let client = "$db = new PDO(\"mysql:unix_socket=$socket;dbname=one\", 'e2e', 'e2e-password', [PDO::MYSQL_ATTR_INIT_COMMAND => 'SET @first = 4']);";
    for at in ["Outboard\\snapshot(); CLIENT", "CLIENT Outboard\\snapshot();"] {
        let code = format!(
            "{} echo json_encode($db->query('SELECT @first, CONNECTION_ID()')->fetch(PDO::FETCH_NUM)); $db->exec('SET @first = 0');",
            at.replace("CLIENT", client)
        );
        let answers = ask_often(&of_mysql("rewind", 1, &code), 3);
        assert!(
            answers.iter().all(|answer| answer == &answers[0] && answer[0] == 4),
            "{answers:?}"
        );
    }
}

#[test]
fn a_result_that_was_not_read_ends_its_connection() {
    for at in ["Outboard\\snapshot(); CLIENT", "CLIENT Outboard\\snapshot();"] {
        let code = format!(
            "{} echo json_encode(row('SELECT CONNECTION_ID()')[0]);
             if ($_SERVER['REQUEST_URI'] === '/unbuffered') $unread = $db->query('SELECT 1 UNION SELECT 2', MYSQLI_USE_RESULT);
             if ($_SERVER['REQUEST_URI'] === '/asynchronous') $db->query('SELECT SLEEP(0.1)', MYSQLI_ASYNC);",
            at.replace("CLIENT", CLIENTS[0])
        );
        let site = of_mysql("rewind", 1, &code);
        let first = ask(&site, "/unbuffered");
        assert_eq!(ask(&site, "/asynchronous"), first, "PHP has read the rest: {at}");
        let second = ask(&site, "/");
        assert_ne!(first, second, "{at}");
        assert_eq!(ask(&site, "/"), second, "{at}");
    }
}

#[test]
fn the_server_s_own_commands_for_new_connections_are_never_left_out() {
    let database = MariaDb::start();
    database.create("one");
    database.run("SET GLOBAL init_connect = 'SET @first = 9'; CREATE USER plain@localhost IDENTIFIED BY 'e2e-password'; GRANT SELECT ON one.* TO plain@localhost;");
    let socket = database.socket().to_string_lossy().into_owned();
    let client = CLIENTS[1].replace("'e2e'", "'plain'");
    for at in ["Outboard\\snapshot(); CLIENT", "CLIENT Outboard\\snapshot();"] {
        let site = serving(
            "rewind",
            1,
            &socket,
            &format!("{} echo json_encode(row('SELECT @first'));", at.replace("CLIENT", &client)),
        );
        for answer in ask_often(&site, 4) {
            assert_eq!(answer[0], "9");
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
