//! Parts without a worker: texts and failures.

use super::*;

fn take(running: &mut Running) -> (Progress, Vec<u8>) {
    let mut out = b"before ".to_vec();
    let progress = running.take_output(true, 0, &mut out);
    (progress, out)
}

fn failure() -> Failure {
    Failure::new(Reason::PartFailed, "no")
}

#[test]
fn output_is_taken_once() {
    let mut text = Running::Text(b"text".to_vec());
    assert_eq!(take(&mut text), (Progress::Over, b"before text".to_vec()));
    assert_eq!(take(&mut text), (Progress::Over, b"before ".to_vec()));
}

#[test]
fn a_part_without_output_adds_nothing() {
    for (mut running, progress) in [
        (Running::Waiting, Progress::Pending),
        (Running::Over, Progress::Over),
        (Running::Failed(failure()), Progress::Failed(failure())),
    ] {
        assert_eq!(take(&mut running), (progress, b"before ".to_vec()));
        assert_eq!(running.until_ms(), u64::MAX);
    }
}
