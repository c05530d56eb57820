//! Operations on a store, as PHP packs them.

use super::*;
use crate::testing::Directory;
use outboard_buffer::Account;
use outboard_reactor::testing::in_loop;

/// `PUT` with a condition (0 always, 1 absent), or an increment of one without a value.
fn write(id: &str, value: Option<&str>, condition: u8) -> Vec<u8> {
    let kind = if value.is_some() { 1 } else { 3 };
    let value = value.unwrap_or_default();
    let mut bytes = vec![kind, condition];
    bytes.extend_from_slice(&u64::MAX.to_le_bytes());
    bytes.extend_from_slice(&1_i64.to_le_bytes());
    for length in [id.len(), value.len(), 0] {
        bytes.extend_from_slice(&(length as u32).to_le_bytes());
    }
    [&bytes, id.as_bytes(), value.as_bytes()].concat()
}

fn batch(kind: u8, entries: &[Vec<u8>]) -> Vec<u8> {
    [&[kind][..], &(entries.len() as u32).to_le_bytes(), &entries.concat()].concat()
}

fn reads(ids: &[&str]) -> Vec<u8> {
    let lengths: Vec<u8> = ids.iter().flat_map(|id| (id.len() as u32).to_le_bytes()).collect();
    [&[1][..], &(ids.len() as u32).to_le_bytes(), &lengths, ids.concat().as_bytes()].concat()
}

fn scan(start: &str, end: &str) -> Vec<u8> {
    let mut bytes = vec![3];
    bytes.extend_from_slice(&1000_u32.to_le_bytes());
    bytes.push(0);
    for length in [start.len(), end.len()] {
        bytes.extend_from_slice(&(length as u32).to_le_bytes());
    }
    [&bytes, start.as_bytes(), end.as_bytes()].concat()
}

struct Fixture {
    _directory: Directory,
    entities: std::rc::Rc<Entities>,
}

impl Fixture {
    fn new() -> Self {
        let directory = Directory::new();
        let entities = directory.entities("");
        Self { _directory: directory, entities }
    }

    async fn execute(&self, namespace: &str, operation: &[u8]) -> (u16, Vec<u8>) {
        let mut held = Account::detached().hold(operation.len());
        let owner = Owner::default();
        let result = execute(&self.entities, &owner, namespace, operation, &mut held).await;
        (result.status, result.body.concat())
    }
}

#[test]
fn records_are_written_and_read() {
    in_loop(async {
        let store = Fixture::new();
        let writes =
            [write("a", Some("1"), 0), write("bb", Some("22"), 0), write("a", Some("3"), 1)];
        let (status, states) = store.execute("default", &batch(2, &writes)).await;
        // Present, present, refused; none of them returns a value.
        assert_eq!((status, states), (200, vec![1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 2, 0, 0, 0, 0]));
        let (status, values) = store.execute("default", &reads(&["a", "none", "bb"])).await;
        let expected = [&[1, 0, 0, 0, 255, 255, 255, 255, 2, 0, 0, 0][..], b"122"].concat();
        assert_eq!((status, values), (200, expected));
    });
}

#[test]
fn an_increment_returns_the_new_value() {
    in_loop(async {
        let store = Fixture::new();
        let counts = [write("n", None, 0), write("n", None, 0)];
        let (_, states) = store.execute("default", &batch(2, &counts)).await;
        assert_eq!(states, [&[1, 1, 0, 0, 0][..], b"1", &[1, 1, 0, 0, 0], b"2"].concat());
        store.execute("default", &batch(2, &[write("n", Some("text"), 0)])).await;
        assert_eq!(store.execute("default", &batch(2, &[write("n", None, 0)])).await.0, 409);
    });
}

#[test]
fn a_scan_returns_ids_and_values_in_order() {
    in_loop(async {
        let store = Fixture::new();
        let writes = ["c", "a", "b"].map(|id| write(id, Some("x"), 0));
        store.execute("default", &batch(2, &writes)).await;
        let (status, found) = store.execute("default", &scan("a", "c")).await;
        let lengths = [1, 0, 0, 0, 1, 0, 0, 0];
        let expected = [&[2, 0, 0, 0][..], &lengths, &lengths, b"axbx"].concat();
        assert_eq!((status, found), (200, expected));
    });
}

#[test]
fn long_results_are_not_copied() {
    in_loop(async {
        let store = Fixture::new();
        let value = "x".repeat(1_000);
        let ids: Vec<String> = (0..1_200).map(|number| format!("{number:04}")).collect();
        let writes: Vec<Vec<u8>> = ids.iter().map(|id| write(id, Some(&value), 0)).collect();
        assert_eq!(store.execute("default", &batch(2, &writes)).await.0, 200);
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let (status, values) = store.execute("default", &reads(&ids)).await;
        assert_eq!((status, values.len()), (200, 1_200 * 1_004));
    });
}

#[test]
fn invalid_operations_are_refused() {
    in_loop(async {
        let store = Fixture::new();
        assert_eq!(store.execute("default", b"").await.0, 400);
        assert_eq!(store.execute("none", &reads(&["a"])).await.0, 404);
        let large = write("a", Some(&"x".repeat(2_000)), 0);
        assert_eq!(store.execute("default", &batch(2, &[large])).await.0, 413);
    });
}
