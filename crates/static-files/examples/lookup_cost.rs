//! Prints what a request for a small, remembered file costs before anything is written:
//! `cargo run --release -p outboard-static-files --example lookup_cost`.

use std::hint::black_box;
use std::time::Instant;

use outboard_static_files::{Conditions, Lookup, Root, RootOptions, plan};

const ROUNDS: u32 = 2_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join(format!("outboard-lookup-cost-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("small.css"), [b'x'; 1024])?;
    std::fs::write(folder.join("packed.css"), [b'x'; 1024])?;
    std::fs::write(folder.join("packed.css.br"), [b'x'; 512])?;
    let root = Root::open(&folder, RootOptions::default())?;

    let browser =
        Conditions { accept_encoding: Some(b"gzip, deflate, br, zstd"), ..Conditions::default() };
    let range = Conditions { range: Some(b"bytes=0-99"), ..Conditions::default() };
    measure("lookup", || drop(black_box(root.lookup(black_box(b"/small.css"), 0))));
    measure("lookup of nothing", || drop(black_box(root.lookup(black_box(b"/missing"), 0))));
    measure("lookup and plan", || answer(&root, b"/small.css", &Conditions::default()));
    measure("the same, with a sibling to choose", || answer(&root, b"/packed.css", &browser));
    measure("the same, with a range", || answer(&root, b"/small.css", &range));
    let mut now_ms = 1_000_000;
    measure("lookup and plan, compared with the file system", || {
        now_ms += 1000;
        if let Lookup::File(entry) = root.lookup(b"/small.css", now_ms) {
            drop(black_box(plan(&entry, &Conditions::default())));
        }
    });
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

fn answer(root: &Root, path: &[u8], request: &Conditions<'_>) {
    if let Lookup::File(entry) = root.lookup(black_box(path), 0) {
        drop(black_box(plan(&entry, black_box(request))));
    }
}

fn measure(what: &str, mut round: impl FnMut()) {
    for _ in 0..ROUNDS / 100 {
        round();
    }
    let started = Instant::now();
    for _ in 0..ROUNDS {
        round();
    }
    let ns = started.elapsed().as_nanos() as f64 / f64::from(ROUNDS);
    println!("{ns:7.1} ns  {what}");
}
