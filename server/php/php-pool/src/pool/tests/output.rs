//! The output of processes, through real pipes.

use super::*;
use crate::output_lines::{log_remaining, relay};
use crate::pool::worker_output::OutputReader;
use outboard_reactor::spawn;
use outboard_supervisor::zygote::output_pipe;
use rustix::fd::OwnedFd;

fn write(pipe: &OwnedFd, text: &[u8]) {
    assert_eq!(rustix::io::write(pipe, text).unwrap(), text.len());
}

/// Passes the text through a pipe as the output of worker 1.
fn log_output(pool: &Rc<Pool>, text: &[u8]) {
    let (output, output_end) = output_pipe().unwrap();
    write(&output_end, text);
    drop(output_end);
    let allowance = pool.core.log.allowance().clone();
    log_remaining(&OutputReader { core: pool.core.clone(), number: Some(1), allowance }, &output);
}

#[test]
fn output_is_logged_by_lines_with_the_process() {
    in_loop(async {
        let log = LogFile::new();
        let pool = log.pool_of(sequential());
        let _worker = StandIn::join(&pool, 1);
        pool.core.with_worker(1, |worker| worker.process.pid = Some(4_000));
        submit(&pool);
        log_output(&pool, b"first\n\nsecond\nunterminated");
        let text = log.text();
        let lines: Vec<_> = text.lines().filter(|line| line.contains("worker=4000")).collect();
        assert_eq!(lines.len(), 3, "{text}");
        for (line, expected) in lines.iter().zip(["first", "second", "unterminated"]) {
            assert!(line.contains("app=site worker=4000 request=0000000000000001"), "{line}");
            assert!(line.ends_with(expected), "{line}");
        }
    });
}

#[test]
fn long_lines_are_cut() {
    in_loop(async {
        let log = LogFile::new();
        let pool = log.pool_of(sequential());
        log_output(&pool, &[b'x'; 10_000]);
        let lengths: Vec<usize> =
            log.text().lines().map(|line| line.matches('x').count()).collect();
        assert_eq!(lengths, [4_096, 4_096, 10_000 - 2 * 4_096]);
    });
}

#[test]
fn dropped_lines_are_counted_in_the_log() {
    in_loop(async {
        let log = LogFile::new();
        let log_rate = crate::allowance::LogRate { lines: 10, bytes: 1 << 20 };
        let pool = log.pool_of(PoolSettings { log_rate, ..sequential() });
        log_output(&pool, b"line\n".repeat(100).as_slice());
        let text = log.text();
        let logged = text.lines().filter(|line| line.ends_with(" line")).count();
        assert_eq!(logged, 20, "two seconds' lines: {text}");
        log.has("lines_per_second = 10");
        log.has("lines (320 bytes) were dropped here");
    });
}

#[test]
fn dropped_lines_of_the_zygote_are_reported_once_none_are_dropped() {
    in_loop(async {
        let log = LogFile::new();
        let log_rate = crate::allowance::LogRate { lines: 1_000_000, bytes: 1 };
        let pool = log.pool_of(PoolSettings { log_rate, ..sequential() });
        while pool.core.log.allowance().admit(100) {}
        pool.core.log.log_dropped(pool.core.members.borrow().roster.all());
        assert!(!log.text().contains("were dropped"), "lines are still dropped");
    });
}

#[test]
fn output_during_the_start_is_part_of_the_failure() {
    in_loop(async {
        let pool = pool(1);
        let (output, output_end) = output_pipe().unwrap();
        let _starting = StandIn::starting(&pool, 1);
        pool.core.with_worker(1, |worker| worker.output = Some(output));
        write(&output_end, b"PHP Fatal error: no such class\n");
        pool.reap(1, Some(255), "exited with code 255");
        let error = pool.ready().await.unwrap_err();
        let expected =
            "a worker exited with code 255 while starting: PHP Fatal error: no such class";
        assert_eq!(error.message, expected);
    });
}

#[test]
fn a_failed_start_is_explained_by_the_last_lines() {
    let mut output = crate::pool::startup_output::StartupOutput::default();
    assert_eq!(output.explain("it died"), "it died");
    output.record(b"first\nsec");
    output.record(b"ond\n");
    assert_eq!(output.explain("it died"), "it died: first\nsecond");
    (0..1_000).for_each(|line| output.record(format!("line {line}\n").as_bytes()));
    let text = output.explain("it died");
    assert!((1_900..2_100).contains(&text.len()), "{}", text.len());
    assert!(text.starts_with("it died: line ") && text.ends_with("line 998\nline 999"), "{text}");
    output.record(&[b'x'; 5_000]);
    output.record(b"\n");
    assert!(output.explain("it died").len() > 2_000, "a line that is too long is not left out");
}

#[test]
fn a_pipe_is_relayed_until_it_is_closed() {
    in_loop(async {
        let log = LogFile::new();
        let pool = log.pool_of(sequential());
        let (output, output_end) = output_pipe().unwrap();
        let (reader, done) = (
            OutputReader::of_zygote(pool.core.clone()),
            Rc::new(outboard_reactor::Event::default()),
        );
        let is_done = done.clone();
        spawn(async move {
            relay(reader, output).await;
            is_done.set();
        });
        outboard_reactor::yield_now().await;
        write(&output_end, b"begin");
        outboard_reactor::yield_now().await;
        write(&output_end, b"ning\nend");
        drop(output_end);
        done.wait().await;
        log.has(" beginning\n");
        log.has(" end\n");
    });
}
