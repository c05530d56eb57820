//! Notifications, as a service manager receives them.

use super::*;
use outboard_gateway::server_event::Ready;

/// A service manager at this path, and what it receives for an event.
fn manager(path: &str) -> (ServiceManager, UnixDatagram) {
    let address = match path.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name).unwrap(),
        None => SocketAddr::from_pathname(path).unwrap(),
    };
    let receiver = UnixDatagram::bind_addr(&address).unwrap();
    (ServiceManager { socket: Some(connect(path).unwrap()) }, receiver)
}

fn received(receiver: &UnixDatagram) -> String {
    let mut buffer = [0; 4096];
    let count = receiver.recv(&mut buffer).unwrap();
    String::from_utf8(buffer[..count].to_vec()).unwrap()
}

#[test]
fn each_event_is_a_message_of_sd_notify() {
    let (manager, receiver) = manager(&format!("@outboard-notify-{}", std::process::id()));
    let pid = std::process::id();
    let ready = Ready {
        listeners: vec!["0.0.0.0:80".to_owned(), "0.0.0.0:443".to_owned()],
        admin_socket: None,
        apps: Vec::new(),
    };
    let failed = "the file has errors\nin line 3\nREADY=0".to_owned();
    for (event, expected) in [
        (
            ServerEvent::Ready(ready),
            format!("READY=1\nMAINPID={pid}\nSTATUS=serving on 0.0.0.0:80 0.0.0.0:443"),
        ),
        (ServerEvent::Reloaded(Ok(4)), "READY=1\nSTATUS=generation 4 is active".to_owned()),
        // One line: what follows would be fields of the message.
        (
            ServerEvent::Reloaded(Err(failed)),
            "READY=1\nSTATUS=reload failed: the file has errors".to_owned(),
        ),
        (ServerEvent::Alive, "WATCHDOG=1".to_owned()),
        (
            ServerEvent::HandedOver { pid: 7 },
            "MAINPID=7\nSTATUS=process 7 has taken over".to_owned(),
        ),
        (ServerEvent::Stopping, "STOPPING=1\nSTATUS=finishing running requests".to_owned()),
    ] {
        manager.on_event(&event);
        assert_eq!(received(&receiver), expected);
    }
    manager.on_event(&ServerEvent::Reloading);
    let text = received(&receiver);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines[0], lines[2]), ("RELOADING=1", "STATUS=reloading"));
    let now_us = lines[1].strip_prefix("MONOTONIC_USEC=").unwrap().parse::<u64>().unwrap();
    assert!(now_us > 0);
}

#[test]
fn a_manager_that_receives_nothing_does_not_block_the_server() {
    let path = std::env::temp_dir().join(format!("outboard-manager-{}", std::process::id()));
    let (manager, receiver) = manager(path.to_str().unwrap());
    for _ in 0..10_000 {
        manager.on_event(&ServerEvent::Alive);
    }
    assert_eq!(received(&receiver), "WATCHDOG=1");
    drop(receiver);
    manager.on_event(&ServerEvent::Stopping);
    std::fs::remove_file(&path).unwrap();
    assert!(connect(path.to_str().unwrap()).is_err());
    ServiceManager { socket: None }.on_event(&ServerEvent::Alive);
}
