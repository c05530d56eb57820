use proptest::prelude::*;

use super::*;

fn ranges(list: &[(u64, u64)]) -> RangeSelection {
    RangeSelection::Ranges(list.iter().map(|&(start, end)| ByteRange { start, end }).collect())
}

#[test]
fn range_fields_select_what_section_14_says() {
    for (field, expected) in [
        ("bytes=0-0", ranges(&[(0, 1)])),
        ("bytes=0-499", ranges(&[(0, 500)])),
        ("bytes=500-999", ranges(&[(500, 1000)])),
        ("bytes=-500", ranges(&[(9500, 10000)])),
        ("bytes=9500-", ranges(&[(9500, 10000)])),
        ("bytes=9999-", ranges(&[(9999, 10000)])),
        ("bytes=0-", ranges(&[(0, 10000)])),
        ("bytes=-20000", ranges(&[(0, 10000)])),
        ("bytes=9000-20000", ranges(&[(9000, 10000)])),
        ("bytes=0-0,-1", ranges(&[(0, 1), (9999, 10000)])),
        ("bytes= 0-999, 4500-5499, -1000", ranges(&[(0, 1000), (4500, 5500), (9000, 10000)])),
        ("Bytes=1-2", ranges(&[(1, 3)])),
        ("bytes=5000-5001, 10-11", ranges(&[(5000, 5002), (10, 12)])),
        ("bytes=500-600,601-999", ranges(&[(500, 1000)])),
        ("bytes=500-700,601-999", ranges(&[(500, 1000)])),
        ("bytes=0-1,9000-9001,0-8990", ranges(&[(0, 9002)])),
        ("bytes=5-10,20000-", ranges(&[(5, 11)])),
        ("bytes=1-2,,4000-4001,", ranges(&[(1, 3), (4000, 4002)])),
        ("bytes=10000-", RangeSelection::Unsatisfiable),
        ("bytes=10000-,-0", RangeSelection::Unsatisfiable),
        ("bytes=-0", RangeSelection::Unsatisfiable),
        ("bytes=99999999999999999999999999-", RangeSelection::Unsatisfiable),
        ("bytes=0-99999999999999999999999999", ranges(&[(0, 10000)])),
        ("bytes=-99999999999999999999999999", ranges(&[(0, 10000)])),
        ("bytes=5-4", RangeSelection::Whole),
        ("bytes=5-4,0-1", RangeSelection::Whole),
        ("bytes=-", RangeSelection::Whole),
        ("bytes=", RangeSelection::Whole),
        ("bytes=,", RangeSelection::Whole),
        ("bytes=1", RangeSelection::Whole),
        ("bytes=a-b", RangeSelection::Whole),
        ("bytes=+1-2", RangeSelection::Whole),
        ("bytes=1 - 2", RangeSelection::Whole),
        ("bytes=1-2-3", RangeSelection::Whole),
        ("bytes", RangeSelection::Whole),
        ("items=0-1", RangeSelection::Whole),
        ("", RangeSelection::Whole),
    ] {
        assert_eq!(select_ranges(field.as_bytes(), 10000), expected, "{field:?}");
    }
}

#[test]
fn an_empty_representation_has_no_ranges() {
    assert_eq!(select_ranges(b"bytes=0-", 0), RangeSelection::Unsatisfiable);
    assert_eq!(select_ranges(b"bytes=-0", 0), RangeSelection::Unsatisfiable);
    assert_eq!(select_ranges(b"bytes=-5", 0), RangeSelection::Whole);
}

#[test]
fn too_many_specs_are_ignored() {
    let field = |count: u64| {
        let specs: Vec<_> = (0..count).map(|i| format!("{}-{0}", i * 1000)).collect();
        format!("bytes={}", specs.join(","))
    };
    assert!(
        matches!(select_ranges(field(32).as_bytes(), 1 << 20), RangeSelection::Ranges(list) if list.len() == 32)
    );
    assert_eq!(select_ranges(field(33).as_bytes(), 1 << 20), RangeSelection::Whole);
    assert_eq!(
        select_ranges(format!("bytes=0-1{}", ",".repeat(40)).as_bytes(), 100),
        RangeSelection::Whole
    );
}

fn spec() -> impl Strategy<Value = String> {
    prop_oneof![
        (0u64..3000, 0u64..3000).prop_map(|(a, b)| format!("{a}-{b}")),
        (0u64..3000).prop_map(|a| format!("{a}-")),
        (0u64..3000).prop_map(|a| format!("-{a}")),
        any::<u64>().prop_map(|a| format!("{a}-{}", u64::MAX)),
        Just(String::new()),
    ]
}

proptest! {
    #[test]
    fn selected_ranges_lie_inside_and_apart(
        specs in proptest::collection::vec(spec(), 0..40),
        size in prop_oneof![0u64..3000, any::<u64>()],
    ) {
        check(format!("bytes={}", specs.join(",")).as_bytes(), size)?;
    }

    #[test]
    fn any_bytes_are_survived(field in proptest::collection::vec(any::<u8>(), 0..80), size: u64) {
        check(&field, size)?;
        check(&[b"bytes=", field.as_slice()].concat(), size)?;
    }
}

fn check(field: &[u8], size: u64) -> Result<(), TestCaseError> {
    if let RangeSelection::Ranges(ranges) = select_ranges(field, size) {
        prop_assert!(!ranges.is_empty() && ranges.len() <= SPECS_MAX);
        for (index, range) in ranges.iter().enumerate() {
            prop_assert!(range.start < range.end && range.end <= size);
            for other in &ranges[..index] {
                prop_assert!(!range.nearly_touches(*other));
            }
        }
        prop_assert!(ranges.iter().map(|range| range.length()).sum::<u64>() <= size);
    }
    Ok(())
}

#[test]
fn content_range_names_the_last_byte() {
    assert_eq!(ByteRange { start: 0, end: 10 }.content_range(100), "bytes 0-9/100");
}
