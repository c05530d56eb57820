//! A process of its own, because the limit on open files is one per process.

use outboard_static_files::{Lookup, Root, RootOptions};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn running_out_of_descriptors_clears_the_cache_and_serves() {
    const FILES: usize = 100;
    let folder = std::env::temp_dir().join(format!("outboard-descriptors-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for number in 0..FILES {
        std::fs::write(folder.join(format!("{number}.txt")), "not kept in memory").unwrap();
    }
    let options = RootOptions { small_file_bytes: 0, ..RootOptions::default() };
    let root = Root::open(&folder, options).unwrap();
    let limits = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(40), ..limits }).unwrap();
    let served = |number: &usize| {
        let path = format!("/{number}.txt");
        matches!(root.lookup(path.as_bytes(), 0), Lookup::File(_))
    };
    let count = (0..FILES).filter(served).count();
    setrlimit(Resource::Nofile, limits).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(count, FILES);
}
