//! Members on one thread that ask each other for places.

use super::*;
use outboard_reactor::{run, spawn, yield_now};
use std::cell::RefCell;

/// A member's idle sockets, which it closes when others ask.
fn answering(
    (member, doorbell): &(Rc<Member>, Arc<Doorbell>),
    idle: Vec<Socket>,
) -> Rc<RefCell<Vec<Socket>>> {
    let (member, doorbell) = (member.clone(), doorbell.clone());
    let idle = Rc::new(RefCell::new(idle));
    let held = idle.clone();
    spawn(async move {
        loop {
            doorbell.rung().await;
            member.answer(|| {
                let closed = held.borrow_mut().pop();
                closed.is_some()
            });
        }
    });
    idle
}

fn join(sockets: &Arc<Sockets>) -> Rc<Member> {
    sockets.join(&Arc::default())
}

/// A member and the doorbell that is rung for it.
fn join_to_answer(sockets: &Arc<Sockets>) -> (Rc<Member>, Arc<Doorbell>) {
    let doorbell = Arc::default();
    (sockets.join(&doorbell), doorbell)
}

fn at_rest(mut socket: Socket) -> Socket {
    socket.rest();
    socket
}

#[test]
fn members_together_have_as_many_connections_as_may_be() {
    run(async {
        let sockets = Sockets::new(3);
        let (one, other) = (join(&sockets), join(&sockets));
        let held = [one.take(), other.take(), one.take()];
        assert!(held.iter().all(Option::is_some));
        assert!(one.take().is_none() && other.take().is_none());
        assert!(other.take_from_others().await.is_none(), "none is idle");
        drop(held);
        assert!(other.take().is_some());
    })
    .unwrap();
}

#[test]
fn idle_connections_of_others_close_for_those_that_need_a_place() {
    run(async {
        let sockets = Sockets::new(2);
        let (rich, poor) = (join_to_answer(&sockets), join(&sockets));
        let held = (0..2).map(|_| at_rest(rich.0.take().unwrap())).collect();
        let idle = answering(&rich, held);
        let first = poor.take_from_others().await.unwrap();
        assert_eq!(idle.borrow().len(), 1, "no more than needed");
        let second = poor.take_from_others().await.unwrap();
        assert!(poor.take_from_others().await.is_none());
        drop((first, second));
        assert!(rich.0.take().is_some());
        assert_eq!(sockets.lock().asked(), 0);
    })
    .unwrap();
}

#[test]
fn a_member_whose_connections_are_in_use_again_refers_to_another() {
    run(async {
        let sockets = Sockets::new(3);
        let (quick, poor) = (join(&sockets), join(&sockets));
        let slow = join_to_answer(&sockets);
        let mut used = [quick.take().unwrap(), quick.take().unwrap()];
        used.iter_mut().for_each(Socket::rest);
        let idle = answering(&slow, vec![at_rest(slow.0.take().unwrap())]);
        let (task, found) = (poor.clone(), Rc::new(RefCell::new(None)));
        let finder = found.clone();
        spawn(async move {
            let socket = task.take_from_others().await;
            finder.replace(Some(socket));
        });
        while sockets.lock().asked() == 0 {
            yield_now().await;
        }
        used.iter_mut().for_each(Socket::resume);
        quick.answer(|| false);
        while found.borrow().is_none() {
            yield_now().await;
        }
        assert!(found.take().is_some_and(|socket| socket.is_some()));
        assert!(idle.borrow().is_empty());
        assert!(poor.take().is_some(), "its place is free again");
    })
    .unwrap();
}

#[test]
fn a_wait_that_is_given_up_keeps_no_place() {
    run(async {
        let sockets = Sockets::new(1);
        let (rich, poor) = (join(&sockets), join(&sockets));
        let idle = at_rest(rich.take().unwrap());
        let mut wait = Box::pin(poor.take_from_others());
        let is_ready = poll_fn(|context| Poll::Ready(wait.as_mut().poll(context).is_ready()));
        assert!(!is_ready.await);
        drop(idle);
        assert!(rich.take().is_none(), "the place has been granted");
        drop(wait);
        rich.answer(|| false);
        assert!(rich.take().is_some());
    })
    .unwrap();
}
