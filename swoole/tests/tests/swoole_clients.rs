//! Swoole's coroutine clients and pools, against real services.

#![forbid(unsafe_code)]

use outboard_e2e::{Docroot, MariaDb, Program, Redis};
use std::os::unix::fs::PermissionsExt;

#[test]
fn clients_and_pools_have_the_results_of_the_extension() {
    let (database, redis) = (MariaDb::start(), Redis::start());
    database.create("clients");
    // As root, the program is another user.
    let all = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(redis.socket(), all).expect("it is ours");
    let path = |path: &std::path::Path| path.to_str().expect("the tests name it").to_owned();
    let variables = [
        ("DB_SOCKET", path(database.socket())),
        ("DB_USER", MariaDb::USER.to_owned()),
        ("DB_PASSWORD", MariaDb::PASSWORD.to_owned()),
        ("REDIS_SOCKET", path(&redis.socket())),
        ("REDIS_PASSWORD", Redis::PASSWORD.to_owned()),
    ];
    let output = Program::run_with(&Docroot::of("swoole"), "clients.php", &variables);
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "connect true",
            "create true",
            "insert [true,2,1]",
            "query [{\"name\":\"one\"},{\"name\":\"two\"}]",
            "execute [{\"id\":2,\"name\":\"two\"}]",
            "error [false,1064]",
            "transaction [true,true,true,2]",
            "escape \"it\\\\'s\"",
            "defer [true,[{\"SLEEP(0.01)\":\"0\"}]]",
            "close [true,false]",
            "refused [false,1045]",
            "pool true",
            "pdo true",
            "warning false",
            "mysqli {\"one\":\"1\"}",
            "redis pool 1",
            "listen [true,true]",
            "http [true,201,\"GET \\/path?q=1 header\",\"42\",{\"a\":\"b\"}]",
            "http refused [false,-1]",
            "tcp [true,true]",
            "message \"cba\"",
            "late [false,true]",
            "tcp refused [false]",
            "process [\"THROUGH A PIPE\",7]",
            "end null",
        ],
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
