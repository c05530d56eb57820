//! Servers of MySQL that go away, refuse a login, encrypt, are several, or have commands of their own.

use super::*;
use crate::mysql::{CLIENTS, of_mysql};
use std::collections::HashSet;

/// Ends a connection, and returns when it has gone.
fn kill(id: &str) {
    MARIADB.run(&format!("KILL {id}"));
    let is_there = format!("SELECT id FROM information_schema.processlist WHERE id = {id}");
    eventually("the connection ends", || MARIADB.run(&is_there).is_empty());
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
    logged(&boot, &["cannot be opened again"]);
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
        logged(&site, &["Access denied"]);
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
