//! An upgrade as both servers see it, over the socket between them.

use crate::message::{FromSuccessor, ToSuccessor};
use crate::{Handed, LINK_VERSION, LinkFacts, Predecessor, Stage, Successor, Verdict};
use outboard_reactor::run;
use outboard_ring::control;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// The new server as the old one has it, and the other end of its socket.
fn successor() -> (Successor, OwnedFd) {
    let (control, of_successor) = control::pair().unwrap();
    (Successor::new(control, 7).unwrap(), of_successor)
}

/// Both servers, after the old one has left nothing.
fn servers() -> (Successor, Predecessor) {
    let (successor, control) = successor();
    successor.bequeath(&[], None, Vec::new()).unwrap();
    (successor, Predecessor::of_control(control).unwrap().0)
}

#[test]
fn sockets_files_and_the_link_are_inherited_in_order() {
    run(async {
        let (successor, control) = successor();
        let pairs: Vec<_> = (0..6).map(|_| UnixStream::pair().unwrap()).collect();
        let (sockets, mut clients): (Vec<OwnedFd>, Vec<UnixStream>) =
            pairs.into_iter().map(|(socket, client)| (OwnedFd::from(socket), client)).unzip();
        let (link, mut far_end) = UnixStream::pair().unwrap();
        let facts = LinkFacts {
            store: Some("/srv/kv".into()),
            namespaces: vec!["sessions".to_owned()],
            processes: vec!["a/queue/0".to_owned()],
        };
        let files = vec![PathBuf::from("/run/outboard.sock")];
        let bequeathed =
            successor.bequeath(&sockets, Some((link.into(), facts.clone())), files.clone());
        bequeathed.unwrap();
        let (_predecessor, estate) = Predecessor::of_control(control).unwrap();
        assert_eq!((estate.sockets.len(), estate.files), (6, files));
        for (number, (socket, client)) in estate.sockets.into_iter().zip(&mut clients).enumerate() {
            client.write_all(&[number as u8]).unwrap();
            let mut byte = [0];
            UnixStream::from(socket).read_exact(&mut byte).unwrap();
            assert_eq!(usize::from(byte[0]), number);
        }
        let (link, inherited) = estate.link.unwrap();
        assert_eq!(inherited, facts);
        UnixStream::from(link).write_all(b"x").unwrap();
        assert_eq!(far_end.read(&mut [0]).unwrap(), 1);
    })
    .unwrap();
}

#[test]
fn the_steps_of_an_upgrade_follow_each_other() {
    run(async {
        let (successor, predecessor) = servers();
        successor.released();
        assert_eq!(predecessor.prepared().await.unwrap(), Handed::Over);
        assert_eq!(successor.stage().await, Ok(Stage::Prepared));
        successor.complete();
        assert_eq!(predecessor.acquired().await.unwrap(), Handed::Over);
        assert_eq!(successor.stage().await, Ok(Stage::Acquired));
        successor.leave_to();
        assert_eq!(predecessor.replace().await.unwrap(), Verdict::Ours);
    })
    .unwrap();
}

#[test]
fn a_server_that_is_ready_waits_until_the_old_one_accepts_no_more() {
    run(async {
        let (successor, predecessor) = servers();
        let replaced = std::rc::Rc::new(std::cell::Cell::new(None));
        let verdict = replaced.clone();
        outboard_reactor::spawn(async move {
            verdict.set(Some(predecessor.replace().await.unwrap()));
        });
        assert_eq!(successor.stage().await, Ok(Stage::Ready));
        assert_eq!(replaced.get(), None);
        successor.leave_to();
        while replaced.get().is_none() {
            outboard_reactor::sleep(1).await;
        }
        assert_eq!(replaced.get(), Some(Verdict::Ours));
    })
    .unwrap();
}

#[test]
fn an_upgrade_that_is_given_up_ends_the_new_server() {
    run(async {
        for is_ready in [false, true] {
            let (successor, predecessor) = servers();
            drop(successor);
            match is_ready {
                true => assert_eq!(predecessor.replace().await.unwrap(), Verdict::GivenUp),
                false => assert_eq!(predecessor.prepared().await.unwrap(), Handed::GivenUp),
            }
        }
    })
    .unwrap();
}

#[test]
fn a_predecessor_that_has_ended_has_left_everything() {
    run(async {
        let (old, control) = control::pair().unwrap();
        control::send(&old, &ToSuccessor::End { files: Vec::new() }, &[]).unwrap();
        let (predecessor, _) = Predecessor::of_control(control).unwrap();
        drop(old);
        assert_eq!(predecessor.prepared().await.unwrap(), Handed::Over);
        assert_eq!(predecessor.acquired().await.unwrap(), Handed::Over);
        assert_eq!(predecessor.replace().await.unwrap(), Verdict::Ours);
    })
    .unwrap();
}

#[test]
fn the_old_server_reports_why_the_new_one_does_not_start() {
    run(async {
        let (successor, predecessor) = servers();
        predecessor.report_failure("port 80 is in use");
        assert_eq!(successor.stage().await, Err("port 80 is in use".to_owned()));
        predecessor.report_failure(&"é".repeat(100_000));
        assert_eq!(successor.stage().await, Err("é".repeat(4_000)));
        drop(predecessor);
        let why = successor.stage().await.unwrap_err();
        assert!(why.contains("has ended"), "{why}");
        // What is sent then is lost, and no error of the old server.
        successor.bequeath(&[], None, Vec::new()).unwrap();
        successor.released();
    })
    .unwrap();
}

#[test]
fn a_link_of_another_format_is_refused_on_both_sides() {
    let (old, control) = control::pair().unwrap();
    let link = ToSuccessor::Link { version: LINK_VERSION + 1, facts: LinkFacts::default() };
    control::send(&old, &link, &[]).unwrap();
    let error = Predecessor::of_control(control).unwrap_err();
    assert!(error.to_string().contains("restart the server"), "{error}");
    let (reply, _) = control::receive::<FromSuccessor>(&old).unwrap().unwrap();
    assert!(matches!(reply, FromSuccessor::Failed { why } if why == error.to_string()));
}

#[test]
fn an_upgrade_may_be_given_up_before_everything_was_sent() {
    for message in [Some(ToSuccessor::GiveUp), None] {
        let (old, control) = control::pair().unwrap();
        control::send(&old, &ToSuccessor::Sockets, &[]).unwrap();
        if let Some(message) = message {
            control::send(&old, &message, &[]).unwrap();
        }
        drop(old);
        let error = Predecessor::of_control(control).unwrap_err();
        assert!(error.to_string().contains("has given up"), "{error}");
    }
}
