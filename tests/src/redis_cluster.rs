//! Redis Cluster on this machine: three primaries with a replica each, which keep nothing.

use crate::{Child, Launch, Scratch};
use std::net::TcpListener;
use std::process::Command;

const NODES: usize = 6;
/// How long a node is silent before another takes its place. Shorter, and a busy machine is taken
/// for a dead one.
const NODE_TIMEOUT_MS: &str = "3000";

/// A cluster that is whole.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<Node>,
    _scratch: Scratch,
}

#[derive(Debug)]
struct Node {
    port: u16,
    child: Child,
}

impl RedisCluster {
    /// Starts it and returns when every slot has a primary and every primary a replica that has
    /// all that it has.
    pub fn start() -> RedisCluster {
        let scratch = Scratch::new("redis-cluster");
        let nodes: Vec<Node> = (0..NODES).map(|number| Node::start(&scratch, number)).collect();
        let cluster = RedisCluster { nodes, _scratch: scratch };
        let mut create = vec!["--cluster".to_owned(), "create".to_owned()];
        create.extend(cluster.addresses());
        let options = ["--cluster-replicas", "1", "--cluster-yes"].map(str::to_owned);
        create.extend(options);
        let created = Command::new("redis-cli").args(&create).output().expect("redis-cli runs");
        let said = String::from_utf8_lossy(&created.stdout).into_owned();
        assert!(said.contains("All 16384 slots covered"), "{said}");
        for node in &cluster.nodes {
            node.says("Cluster state changed: ok");
        }
        // redis-cli makes the first half primaries.
        (0..NODES / 2).for_each(|primary| cluster.wait_for_replica(primary));
        cluster
    }

    /// Returns when a replica of the primary has all that was written to it. It is not enough that
    /// it says so: what is written is sent to it from its next acknowledgement on.
    #[track_caller]
    fn wait_for_replica(&self, primary: usize) {
        let own = |key: &String| self.primary_of(&self.slot(key)) == primary;
        let key = (0..).map(|number| format!("ready-{number}")).find(own).expect("there is one");
        let port = self.nodes[primary].port.to_string();
        let script =
            "printf 'SET %s 1\\nWAIT 1 60000\\nDEL %s\\n' \"$1\" \"$1\" | redis-cli -p \"$0\"";
        let said = Command::new("sh").args(["-c", script, &port, &key]).output();
        let said = said.expect("redis-cli runs").stdout;
        assert_eq!(String::from_utf8_lossy(&said), "OK\n1\n1\n", "a primary has no replica");
    }

    /// Where the nodes are, as `host:port`.
    pub fn addresses(&self) -> Vec<String> {
        self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect()
    }

    /// Asks the node with this number; what it says.
    #[track_caller]
    pub fn ask(&self, node: usize, command: &[&str]) -> String {
        let port = self.nodes[node].port.to_string();
        let asked = Command::new("redis-cli").args(["-p", &port]).args(command).output();
        let asked = asked.expect("redis-cli runs");
        assert!(asked.status.success(), "{command:?}: {asked:?}");
        let said = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
        assert!(!said.starts_with("ERR"), "{command:?}: {said}");
        said
    }

    /// The slot of a key.
    pub fn slot(&self, key: &str) -> String {
        self.ask(0, &["CLUSTER", "KEYSLOT", key])
    }

    /// The number of the primary that has a slot.
    #[track_caller]
    pub fn primary_of(&self, slot: &str) -> usize {
        let slot: u16 = slot.parse().expect("a slot is a number");
        let has = |node: &usize| {
            let said = self.ask(*node, &["CLUSTER", "NODES"]);
            let own = said.lines().find(|line| line.contains("myself")).unwrap_or_default();
            own.split(' ').skip(8).any(|range| {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                let (first, last) = (first.parse::<u16>(), last.parse::<u16>());
                first.is_ok_and(|first| first <= slot) && last.is_ok_and(|last| slot <= last)
            })
        };
        (0..self.nodes.len()).find(has).expect("every slot has a primary")
    }

    /// The number of the replica of a primary.
    #[track_caller]
    pub fn replica_of(&self, primary: usize) -> usize {
        let said = self.ask(primary, &["INFO", "replication"]);
        let line = said.lines().find(|line| line.starts_with("slave0:")).unwrap_or_default();
        let port = line.split(',').find_map(|part| part.strip_prefix("port=")?.parse::<u16>().ok());
        let port = port.unwrap_or_else(|| panic!("node {primary} has no replica: {said}"));
        self.nodes.iter().position(|node| node.port == port).expect("it is one of ours")
    }

    /// What the cluster calls a node.
    pub fn id(&self, node: usize) -> String {
        self.ask(node, &["CLUSTER", "MYID"])
    }

    /// Ends a node at once, as a power failure would.
    pub fn kill(&self, node: usize) {
        let child = &self.nodes[node].child;
        child.signal(rustix::process::Signal::KILL);
        child.wait();
    }

    /// Moves the keys from one node to another while the slot is on its way.
    #[track_caller]
    pub fn migrate(&self, from: usize, to: usize, keys: &[&str]) {
        let port = self.nodes[to].port.to_string();
        let mut command = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
        command.extend(keys);
        assert_eq!(self.ask(from, &command), "OK");
    }
}

impl Node {
    /// The system names a free port; until Redis has it, another process may take it.
    fn start(scratch: &Scratch, number: usize) -> Node {
        for attempt in 0..20 {
            let [port, bus_port] = free_ports();
            let folder = scratch.folder(&format!("node-{number}-{attempt}"));
            let child = Launch::new("/usr/bin/redis-server")
                .args(["--port", &port.to_string(), "--cluster-port", &bus_port.to_string()])
                .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
                .args(["--cluster-enabled", "yes", "--cluster-node-timeout", NODE_TIMEOUT_MS])
                // A part of the slots is served while another waits for its replica, and that takes
                // over however long it heard nothing.
                .args(["--cluster-require-full-coverage", "no"])
                .args(["--cluster-replica-validity-factor", "0"])
                .args(["--repl-diskless-sync-delay", "0", "--dir"])
                .arg(folder)
                .start();
            let ready = |line: &str| line.to_lowercase().contains("ready to accept").then_some(());
            if child.wait_for(ready).is_ok() {
                return Node { port, child };
            }
        }
        panic!("Redis finds no port that is free");
    }

    #[track_caller]
    fn says(&self, words: &str) {
        let said = self.child.wait_for(|line| line.contains(words).then_some(()));
        said.unwrap_or_else(|output| panic!("a node never says {words:?}: {output}"));
    }
}

fn free_ports() -> [u16; 2] {
    // Both are held until both are known, or they would be the same.
    let held = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").expect("there is a free port"));
    held.each_ref().map(|listener| listener.local_addr().expect("it is bound").port())
}
