//! Siblings of a zygote that runs a program.

#[path = "../../../server/php/php-host/tests/driver/mod.rs"]
mod driver;

use driver::{Host, Mode, TempDir, settings_in};
use outboard_ring::control::{Event, Order};

#[test]
fn a_program_for_swoole_is_not_split() {
    let folder = TempDir::new();
    let code = "$server = new Swoole\\Http\\Server('127.0.0.1', 0);
        $server->on('request', function ($request, $response) { $response->end('up'); });
        $server->start();";
    let mut settings = settings_in(&folder, Mode::Snapshot, code, "");
    let script = settings.worker.as_mut().unwrap();
    script.starts_server = true;
    script.arguments = vec![script.script.to_str().unwrap().to_owned()];
    let first = Host::with(settings);
    first.order(&Order::Split { sibling: 1 });
    let Event::SplitFailed { sibling: 1, message } = first.event() else { panic!() };
    assert_eq!(message, "the processes of a program that starts a server have one zygote");
}
