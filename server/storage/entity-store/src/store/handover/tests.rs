use super::*;
use crate::store::tests::{Folder, put, value};
use crate::{Durability, NamespaceSettings};
use outboard_reactor::{run, spawn};
use std::cell::RefCell;

const KINDS: [(&str, Durability); 3] = [
    ("always", Durability::Always),
    ("interval", Durability::Interval(1000)),
    ("memory", Durability::Memory),
];

fn settings(folder: &Folder) -> Settings {
    let namespaces = KINDS.map(|(name, durability)| NamespaceSettings::new(name, durability));
    Settings { namespaces: namespaces.into(), ..Settings::new(folder.path().to_owned()) }
}

/// The way from one store to another, as the link of two processes is.
fn remote_to(store: &Rc<RefCell<Option<Rc<Store>>>>) -> Rc<Remote> {
    let there = store.clone();
    Rc::new_cyclic(|me: &std::rc::Weak<Remote>| {
        let me = me.clone();
        Remote::new(move |frame| {
            let (me, store) = (me.clone(), there.borrow().clone());
            spawn(async move {
                let reply = store.expect("it is set").serve(&frame).await.expect("a valid frame");
                me.upgrade().expect("it waits").receive(&reply);
            });
        })
    })
}

/// An old store with records, and a new one that calls it.
struct Pair {
    old: Rc<Store>,
    new: Rc<Store>,
    to_new: Rc<Remote>,
}

impl Pair {
    async fn open(settings: &Settings) -> Self {
        let old = Rc::new(Store::open(settings).unwrap());
        for (name, _) in KINDS {
            old.namespace(name).unwrap().write(put(b"before", b"1")).await.unwrap();
        }
        let to_old = remote_to(&Rc::new(RefCell::new(Some(old.clone()))));
        let new = Rc::new(Store::remote(settings, &to_old));
        let to_new = remote_to(&Rc::new(RefCell::new(Some(new.clone()))));
        Self { old, new, to_new }
    }

    async fn hand_over(&self) {
        self.old.flush().await.unwrap();
        self.old.release().await;
        self.new.acquire().unwrap();
        self.old.copy_memory_to(&self.to_new).await.unwrap();
        self.old.leave_to(&self.to_new);
    }
}

async fn scanned(namespace: &Rc<Namespace>) -> usize {
    let mut scan = namespace.scan(Bound::Unbounded, Bound::Unbounded);
    let mut count = 0;
    loop {
        match scan.next().await.unwrap().len() {
            0 => return count,
            some => count += some,
        }
    }
}

#[test]
fn both_processes_read_and_write_before_and_after_a_handover() {
    let folder = Folder::new();
    let settings = settings(&folder);
    run(async move {
        let pair = Pair::open(&settings).await;
        let version = async |store: &Store, name: &str| {
            store.namespace(name).unwrap().get(b"before").await.unwrap().unwrap().version
        };
        for (name, _) in KINDS {
            let of_new = pair.new.namespace(name).unwrap();
            of_new.write(put(b"by the new one", b"2")).await.unwrap();
            assert_eq!(value(of_new, b"before").await.unwrap(), b"1");
        }
        let before = version(&pair.old, "memory").await;
        pair.hand_over().await;
        assert!(pair.new.is_here() && !pair.old.is_here());
        assert_eq!(version(&pair.new, "memory").await, before);
        for (name, _) in KINDS {
            let of_old = pair.old.namespace(name).unwrap();
            of_old.write(put(b"late", b"3")).await.unwrap();
            let of_new = pair.new.namespace(name).unwrap();
            for (id, expected) in
                [(&b"before"[..], b"1"), (b"by the new one", b"2"), (b"late", b"3")]
            {
                assert_eq!(value(of_new, id).await.unwrap(), expected, "{name}");
                assert_eq!(value(of_old, id).await.unwrap(), expected, "{name}");
            }
            assert_eq!((scanned(of_old).await, scanned(of_new).await), (3, 3));
            let absent = of_old.get_many(&[b"absent", b"late"]).await.unwrap();
            assert_eq!(absent.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true]);
        }
    })
    .unwrap();
}

#[test]
fn a_store_that_is_given_back_has_everything() {
    let folder = Folder::new();
    let settings = settings(&folder);
    run(async move {
        let pair = Pair::open(&settings).await;
        pair.old.release().await;
        pair.new.acquire().unwrap();
        assert!(matches!(pair.old.acquire(), Err(OpenError::Locked { .. })));
        pair.new.release().await;
        pair.old.acquire().unwrap();
        for (name, _) in KINDS {
            let namespace = pair.old.namespace(name).unwrap();
            assert_eq!(value(namespace, b"before").await.unwrap(), b"1", "{name}");
        }
    })
    .unwrap();
}

#[test]
fn calls_wait_while_the_records_move() {
    let folder = Folder::new();
    let settings = settings(&folder);
    run(async move {
        let pair = Pair::open(&settings).await;
        let done = Rc::new(RefCell::new(0));
        let old = pair.old.clone();
        old.release().await;
        for (name, _) in KINDS {
            let (namespace, done) = (old.namespace(name).unwrap().clone(), done.clone());
            spawn(async move {
                namespace.write(put(b"meanwhile", b"4")).await.unwrap();
                *done.borrow_mut() += 1;
            });
        }
        sleep(10).await;
        assert_eq!(*done.borrow(), 0);
        pair.new.acquire().unwrap();
        old.copy_memory_to(&pair.to_new).await.unwrap();
        old.leave_to(&pair.to_new);
        while *done.borrow() < KINDS.len() {
            sleep(1).await;
        }
        for (name, _) in KINDS {
            let namespace = pair.new.namespace(name).unwrap();
            assert_eq!(value(namespace, b"meanwhile").await.unwrap(), b"4", "{name}");
        }
    })
    .unwrap();
}

#[test]
fn a_scan_goes_on_in_the_process_that_has_the_records() {
    let folder = Folder::new();
    let settings = settings(&folder);
    run(async move {
        let pair = Pair::open(&settings).await;
        let of_old = pair.old.namespace("interval").unwrap().clone();
        for number in 0..400 {
            let id = format!("{number:04}");
            of_old.write(put(id.as_bytes(), &[b'v'; 1000])).await.unwrap();
        }
        let mut scan = of_old.scan(Bound::Unbounded, Bound::Unbounded);
        let mut ids: Vec<Box<[u8]>> = Vec::new();
        ids.extend(scan.next().await.unwrap().into_iter().map(|(id, _)| id));
        assert!(ids.len() < 400);
        pair.hand_over().await;
        loop {
            let piece = scan.next().await.unwrap();
            if piece.is_empty() {
                break;
            }
            ids.extend(piece.into_iter().map(|(id, _)| id));
        }
        assert_eq!(ids.len(), 401);
        assert!(ids.is_sorted());
    })
    .unwrap();
}

#[test]
fn calls_end_with_the_other_process() {
    run(async {
        let remote = Rc::new(Remote::new(drop));
        let called = remote.clone();
        let failed = Rc::new(RefCell::new(false));
        let seen = failed.clone();
        spawn(async move {
            let error = called.get_many("default", &[b"a"]).await.unwrap_err();
            *seen.borrow_mut() = matches!(error, StoreError::Unreachable(_));
        });
        while !remote.is_waiting() {
            sleep(1).await;
        }
        remote.close();
        while !*failed.borrow() {
            sleep(1).await;
        }
        assert!(remote.get_many("default", &[b"a"]).await.is_err());
    })
    .unwrap();
}
