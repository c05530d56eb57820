//! Prints what a request for a small, remembered file costs before anything is written:
//! `cargo run --release -p outboard-static-files --example lookup_cost`.

use std::hint::black_box;
use std::time::Instant;

use outboard_http_semantics::Conditions;
use outboard_static_files::{Lookup, Root, RootOptions, plan};

const ROUNDS: u32 = 2_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join(format!("outboard-lookup-cost-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("small.css"), [b'x'; 1024])?;
    std::fs::write(folder.join("packed.css"), [b'x'; 1024])?;
    std::fs::write(folder.join("packed.css.br"), [b'x'; 512])?;
    let root = Root::open(&folder, RootOptions::default())?;

    let browser = Some(&b"gzip, deflate, br, zstd"[..]);
    let whole = Conditions::default();
    let range = Conditions { range: Some(b"bytes=0-99"), ..Conditions::default() };
    measure("lookup", || drop(black_box(root.lookup(black_box(b"/small.css"), 0))));
    measure("lookup of nothing", || drop(black_box(root.lookup(black_box(b"/missing"), 0))));
    measure("lookup and plan", || serve(&root, b"/small.css", None, &whole));
    measure("the same, with a sibling to choose", || serve(&root, b"/packed.css", browser, &whole));
    measure("the same, with a range", || serve(&root, b"/small.css", None, &range));
    let mut now_ms = 1_000_000;
    measure("lookup and plan, compared with the file system", || {
        now_ms += 1000;
        if let Lookup::File(entry) = root.lookup(b"/small.css", now_ms) {
            drop(black_box(plan(&entry, None, &whole)));
        }
    });
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

fn serve(root: &Root, path: &[u8], accept_encoding: Option<&[u8]>, conditions: &Conditions<'_>) {
    if let Lookup::File(entry) = root.lookup(black_box(path), 0) {
        drop(black_box(plan(&entry, accept_encoding, black_box(conditions))));
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
