//! A replica in a process of its own, for tests that kill it. It prints its address.

#![forbid(unsafe_code)]

use outboard_e2e::Replica;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:0".to_owned());
    println!("serving at {}", Replica::at(&name, &address).address());
    loop {
        std::thread::park();
    }
}
