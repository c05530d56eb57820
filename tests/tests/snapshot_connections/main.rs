//! Connections over a snapshot: what the boot has opened is closed, opened again in a request, and never shared.
//! Each worker is rewound, and compares its memory with the snapshot each time; or each request has a fork.

#![forbid(unsafe_code)]

mod mysql;
mod mysql_servers;
mod others;
mod pgsql;

use outboard_e2e::{
    Configured, Docroot, Gate, MariaDb, Memcached, Postgres, Redis, Request, Scratch, eventually,
};
use serde_json::Value;
use std::sync::LazyLock;

static MARIADB: LazyLock<MariaDb> = LazyLock::new(|| {
    let database = MariaDb::start();
    database.create("one");
    database.create("two");
    database
});

static POSTGRES: LazyLock<Postgres> = LazyLock::new(Postgres::start);

/// Both ways in which a snapshot is used: by rewinds, and by forks where none is possible.
const ISOLATIONS: [&str; 2] = ["rewind", "fork"];

/// A server whose script is this code; `$socket` is the one given.
fn serving(isolation: &str, workers: usize, socket: &str, code: &str) -> Configured {
    let forbid = if isolation == "fork" { "OUTBOARD_FORBID_REWIND = \"1\"\n" } else { "" };
    let empty = Scratch::new("empty");
    let docroot = Docroot::copy(empty.path());
    docroot.put("worker.php", format!("<?php $socket = '{socket}'; {code}"));
    let text = format!(
        "listen = \"127.0.0.1:0\"\n\
         [log.access]\npath = \"off\"\n\
         [pool]\nmin = {workers}\nmax = {workers}\nloopback_slots = 0\n\
         [app.site]\nroot = \"www\"\nmode = \"worker\"\n\
         [app.site.php.env]\nOUTBOARD_VERIFY_REWIND = \"1\"\n{forbid}\
         [app.site.worker]\nscript = \"www/worker.php\"\nisolation = \"rewind\"\n"
    );
    Configured::start(docroot, &text)
}

/// The JSON that the script answers.
#[track_caller]
fn ask(site: &Configured, target: &str) -> Value {
    let response = site.client().send(&Request::get(target)).expect(200);
    serde_json::from_str(&response.text())
        .unwrap_or_else(|_| panic!("{target}: {}\n{}", response.text(), site.child().output()))
}

/// The same of several requests.
#[track_caller]
fn ask_often(site: &Configured, times: usize) -> Vec<Value> {
    (0..times).map(|number| ask(site, &format!("/{number}"))).collect()
}

/// The log has these words, perhaps after the answer.
#[track_caller]
fn logged(site: &Configured, words: &[&str]) {
    eventually("the log has it", || {
        let output = site.child().output();
        if words.iter().all(|one| output.contains(one)) { Ok(()) } else { Err(output) }
    });
}
