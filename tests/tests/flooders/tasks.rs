//! Floods of tasks: a journal with very many of them that is read, and a schedule that has very many due
//! at once.

use super::*;
use std::fmt::Write as _;

/// How many tasks the journal has.
const TASKS: usize = 20_000;

fn with_journal(namespace: &str) -> String {
    text(
        "listen = \"127.0.0.1:0\"\n",
        &format!(
            "mode = \"worker\"\nworker.script = \"www/worker.php\"\n\
             [app.site.pool]\nmin = 1\nmax = 1\nmin_idle = 0\nloopback_slots = 0\n\
             [app.site.tasks]\nworkers = 1\nqueue_length = 1000000\nkv_namespace = {namespace:?}\n\
             [kv.namespace.full]\ndurability = \"interval\"\n\
             [kv.namespace.empty]\ndurability = \"interval\"\n"
        ),
    )
}

/// A reload reads the journal of a namespace as a start does, and the server has clients meanwhile.
#[test]
fn a_journal_of_very_many_tasks_that_is_read() {
    let site = Configured::start(docroot(), &with_journal("full"));
    // In pieces, each of which is far from the deadline of a request.
    for _ in 0..20 {
        site.client().get(&format!("/journaled_tasks?count={}", TASKS / 20)).expect(200);
    }
    let docroot = site.into_stopped();
    let site = Configured::start(docroot, &with_journal("empty"));
    is_borne("a large journal of tasks", site, |site| {
        site.rewrite(&with_journal("full"));
        let socket = site.admin_socket();
        Flood::of_clients(1, move || {
            ask_admin(&socket, "POST", "/reload");
            sleep(DEADLINE);
        })
    });
}

#[test]
fn very_many_scheduled_tasks_that_are_due_at_once() {
    let mut site = "mode = \"worker\"\nworker.script = \"www/worker.php\"\n\
         [app.site.pool]\nmin = 1\nmax = 1\nmin_idle = 0\nloopback_slots = 0\n\
         [app.site.tasks]\nworkers = 1\nqueue_length = 1000000\n\
         [app.site.tasks.cron]\n"
        .to_owned();
    for number in 0..5000 {
        let _ = writeln!(site, "nothing-{number} = \"every 1s\"");
    }
    is_borne("5,000 scheduled tasks", serving(&site), |_| Flood::of_clients(1, || sleep(DEADLINE)));
}
