use super::*;
use crate::LINE_BYTES_MAX;
use proptest::prelude::*;

const LIMITS: Limits = Limits { bytes: 1 << 17, values: 1 << 10 };

fn bytes(text: &str) -> Value {
    Value::Bytes(text.into())
}

/// All values of an input that comes in pieces of `size`.
fn read(input: &[u8], size: usize) -> Result<Vec<Value>, Error> {
    let (mut reader, mut values) = (Reader::new(LIMITS), Vec::new());
    for mut piece in input.chunks(size) {
        while let Some(value) = reader.read(&mut piece)? {
            values.push(value);
        }
        assert!(piece.is_empty(), "all input is consumed");
    }
    Ok(values)
}

#[test]
fn each_kind_of_value_is_read_however_it_is_cut() {
    for (wire, value) in [
        ("+OK\r\n", bytes("OK")),
        ("-ERR no\r\n", Value::Error("ERR no".into())),
        (":-7\r\n", Value::Integer(-7)),
        ("$2\r\nab\r\n", bytes("ab")),
        ("$0\r\n\r\n", bytes("")),
        ("$4\r\na\r\nb\r\n", bytes("a\r\nb")),
        ("$-1\r\n", Value::Null),
        ("*-1\r\n", Value::Null),
        ("_\r\n", Value::Null),
        ("#t\r\n", Value::Integer(1)),
        ("#f\r\n", Value::Integer(0)),
        (",1.5\r\n", bytes("1.5")),
        ("(99999999999999999999\r\n", bytes("99999999999999999999")),
        ("=6\r\ntxt:ab\r\n", bytes("ab")),
        ("!5\r\nERR x\r\n", Value::Error("ERR x".into())),
        ("*2\r\n:1\r\n*0\r\n", Value::Array(vec![Value::Integer(1), Value::Array(vec![])])),
        ("~1\r\n$-1\r\n", Value::Array(vec![Value::Null])),
        ("%1\r\n+a\r\n:1\r\n", Value::Array(vec![bytes("a"), Value::Integer(1)])),
        (">1\r\n+message\r\n", Value::Push(vec![bytes("message")])),
        ("|1\r\n+a\r\n:1\r\n:2\r\n", Value::Integer(2)),
        ("*1\r\n|1\r\n+a\r\n*0\r\n:2\r\n", Value::Array(vec![Value::Integer(2)])),
    ] {
        for size in 1..=wire.len() {
            assert_eq!(read(wire.as_bytes(), size), Ok(vec![value.clone()]), "{wire:?} by {size}");
        }
        for end in 0..wire.len() {
            assert_eq!(read(&wire.as_bytes()[..end], wire.len()), Ok(vec![]), "{wire:?} to {end}");
        }
    }
}

#[test]
fn values_follow_each_other_on_a_connection() {
    let values = vec![bytes("a"), Value::Push(vec![]), Value::Integer(1)];
    assert_eq!(read(b"$1\r\na\r\n>0\r\n:1\r\n", 3), Ok(values));
}

#[test]
fn malformed_input_is_refused() {
    for wire in [
        "HTTP/1.1 400\r\n",
        "\r\n",
        "+OK\n",
        "?\r\n",
        "$x\r\n",
        "$-2\r\n",
        "$3\r\nabcde",
        "$1\r\na\rb",
        ":x\r\n",
        "#x\r\n",
        "_x\r\n",
        "*-2\r\n",
        "~-1\r\n",
        "=2\r\nab\r\n",
        "*1\r\n>0\r\n",
        "$?\r\n",
    ] {
        assert_eq!(read(wire.as_bytes(), wire.len()), Err(Error::Malformed), "{wire:?}");
    }
}

#[test]
fn values_beyond_the_limits_are_refused_at_once() {
    let deep = "*1\r\n".repeat(9);
    let line = "+".repeat(LINE_BYTES_MAX + 1);
    let lines = format!("*1000\r\n{}", format!("+{}\r\n", "x".repeat(1_000)).repeat(132));
    let attributes = "|0\r\n".repeat(1 << 15) + ":1\r\n";
    for wire in [
        "$131072\r\n",
        "$18446744073709551615\r\n",
        "*1025\r\n",
        "%513\r\n",
        "%9999999999999999999\r\n",
        "*2\r\n*1023\r\n",
        "*2\r\n$131060\r\n",
        &deep,
        &line,
        &lines,
        &attributes,
    ] {
        assert_eq!(read(wire.as_bytes(), 4096), Err(Error::TooLarge), "{wire:.40?}");
    }
}

#[test]
fn limits_hold_for_each_value_and_not_for_the_connection() {
    let wire =
        "$100000\r\n".to_owned() + &"x".repeat(100_000) + "\r\n*1000\r\n" + &":1\r\n".repeat(1_000);
    assert_eq!(read(wire.repeat(3).as_bytes(), 1 << 16).map(|values| values.len()), Ok(6));
}

#[test]
fn an_announced_length_reserves_no_memory() {
    let mut reader = Reader::new(Limits { bytes: usize::MAX, values: usize::MAX });
    assert_eq!(reader.read(&mut &b"*4000000000000\r\n$4000000000000\r\nab"[..]), Ok(None));
    assert!(reader.text.capacity() < 1024 && reader.open[0].1.capacity() < 1024);
}

fn encode(value: &Value, out: &mut Vec<u8>) {
    let array = |kind: char, values: &[Value], out: &mut Vec<u8>| {
        out.extend_from_slice(format!("{kind}{}\r\n", values.len()).as_bytes());
        values.iter().for_each(|value| encode(value, out));
    };
    match value {
        Value::Null => out.extend_from_slice(b"_\r\n"),
        Value::Integer(value) => out.extend_from_slice(format!(":{value}\r\n").as_bytes()),
        Value::Bytes(bytes) => crate::bulk(out, bytes),
        Value::Error(why) => out.extend_from_slice(format!("-{why}\r\n").as_bytes()),
        Value::Array(values) => array('*', values, out),
        Value::Push(values) => array('>', values, out),
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::Integer),
        any::<Vec<u8>>().prop_map(Value::Bytes),
        "[A-Z ]{0,20}".prop_map(Value::Error),
    ];
    leaf.prop_recursive(4, 32, 8, |inner| {
        proptest::collection::vec(inner, 0..8).prop_map(Value::Array)
    })
}

proptest! {
    #[test]
    fn a_value_is_read_as_it_was_written(value in any_value(), size in 1_usize..64) {
        let mut wire = Vec::new();
        encode(&value, &mut wire);
        prop_assert_eq!(read(&wire, size), Ok(vec![value]));
    }

    #[test]
    fn any_input_is_the_same_in_pieces_as_in_one(
        input in proptest::collection::vec(proptest::sample::select(b"+-:$*%>|_#=!~1230\r\nab".to_vec()), 0..200),
        size in 1_usize..16,
    ) {
        prop_assert_eq!(read(&input, size), read(&input, 1 << 10));
    }
}
