//! What coroutines, channels and tables cost a program for Swoole: `make swoole`. CPU time, so that
//! other programs matter little; figures of a release build.

#![forbid(unsafe_code)]

use outboard_e2e::{Docroot, Program};

/// The lines that the script prints: a name and numbers.
fn measured(script: &str) -> Vec<(String, Vec<f64>)> {
    let output = Program::run(&Docroot::of("swoole"), script, &[]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("it prints text");
    let numbers = |line: &str| line.split(' ').filter_map(|number| number.parse().ok()).collect();
    text.lines()
        .filter_map(|line| {
            line.split_once(' ').map(|(name, rest)| (name.to_owned(), numbers(rest)))
        })
        .collect()
}

#[test]
#[ignore = "it measures: make swoole"]
fn ten_thousand_coroutines_hand_over_within_3_us_and_4_kb() {
    let lines = measured("coroutine_costs.php");
    println!("| 10,000 coroutines, a channel each | CPU time each | heap each |\n|---|---|---|");
    for (stacks, numbers) in &lines {
        println!("| {stacks} stacks | {:.1} µs | {:.1} kB |", numbers[0], numbers[1] / 1000.0);
    }
    for (stacks, numbers) in lines {
        assert!(numbers[1] <= 4096.0, "{stacks}: {numbers:?}");
        // Those of new stacks are page faults, whose cost is the system's.
        assert!(stacks == "new" || numbers[0] <= 3.0, "{stacks}: {numbers:?}");
    }
}

#[test]
#[ignore = "it measures: make swoole"]
fn a_table_is_read_three_million_times_a_second() {
    let lines = measured("table_costs.php");
    println!("| method of Table | per second and core |\n|---|---|");
    for (method, numbers) in &lines {
        println!("| {method} | {:.1} M |", numbers[0]);
    }
    for (method, numbers) in lines {
        assert!(!method.starts_with("get") || numbers[0] >= 3.0, "{method}: {numbers:?}");
    }
}

#[test]
#[ignore = "it takes 10 s: make swoole"]
fn rows_stay_whole_for_ten_seconds_while_writers_are_killed() {
    let output = Program::run(&Docroot::of("swoole"), "table_writers.php", &["8", "10"]);
    println!("| table, 8 writers, 10 s | {} |", String::from_utf8_lossy(&output.stderr).trim());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "whole\n", "{output:?}");
}
