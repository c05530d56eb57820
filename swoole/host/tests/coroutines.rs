//! Coroutines of programs for Swoole: what each method does, and what a coroutine may wait within.

#[path = "../../../server/php/php-host/tests/driver/mod.rs"]
mod driver;

use driver::TempDir;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

/// Runs a program as `outboard run` does before there is a server.
fn run(code: &str) -> Output {
    let folder = TempDir::new();
    let script =
        folder.write("program.php", &format!("<?php\nini_set('memory_limit', '256M');\n{code}"));
    Command::new("sh")
        .args(["-c", r#"exec "$0" run 3 "$1" 3>/dev/null"#, env!("CARGO_BIN_EXE_outboard-php")])
        .arg(script)
        .output()
        .unwrap()
}

#[track_caller]
fn prints(code: &str, expected: &str) {
    let output = run(code);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.trim_end(), expected.trim_end(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{output:?}");
}

/// Prints lines of JSON, by `say(...)`, from within a coroutine.
#[track_caller]
fn says(code: &str, expected: &str) {
    let say = "function say(...$values) { echo json_encode(count($values) > 1 ? $values : $values[0]), \"\\n\"; }";
    let names =
        "use Swoole\\Coroutine; use Swoole\\Coroutine\\Channel; use Swoole\\Coroutine\\WaitGroup;";
    prints(&format!("{names} {say} Co\\run(function () {{ {code} }});"), expected);
}

#[test]
fn a_channel_holds_up_to_its_capacity() {
    says(
        "$c = new Channel(2);
         say($c->capacity, $c->errCode, $c->isEmpty(), $c->push(1), $c->push(2), $c->isFull(), $c->length());
         say($c->push(3, 0.001), $c->errCode);
         say($c->pop(), $c->pop(), $c->errCode, $c->pop(0.001), $c->errCode);
         $ring = new Channel(1000); $sum = 0;
         for ($i = 0; $i < 700; $i++) { $ring->push($i); if ($i % 3 == 0) $sum += $ring->pop(); }
         while (!$ring->isEmpty()) { $sum += $ring->pop(); }
         say($sum);",
        "[2,0,true,true,true,true,2]\n[false,-1]\n[1,2,0,false,-1]\n244650",
    );
}

#[test]
fn closing_a_channel_ends_all_waits_for_it() {
    says(
        "$c = new Channel(1); $c->push('left');
         go(function () use ($c) { say('push', $c->push(1), $c->errCode); });
         say($c->stats());
         say($c->close(), $c->close(), $c->pop(), $c->pop(), $c->errCode, $c->push(2), $c->errCode);
         $c = new Channel(1);
         for ($i = 0; $i < 2; $i++) { go(function () use ($c) { say('pop', $c->pop(), $c->errCode); }); }
         $c->close();",
        r#"{"consumer_num":0,"producer_num":1,"queue_num":1}
["push",false,-2]
[true,false,"left",false,-2,false,-2]
["pop",false,-2]
["pop",false,-2]"#,
    );
}

#[test]
fn a_cancelled_wait_for_a_channel_leaves_nothing() {
    says(
        "$c = new Channel(1);
         $first = go(function () use ($c) { say($c->pop(), $c->errCode, Coroutine::isCanceled()); });
         go(function () use ($c) { say('second', $c->pop()); });
         say(Coroutine::cancel($first));
         $c->push('value'); say($c->stats());",
        r#"[false,-3,true]
true
["second","value"]
{"consumer_num":0,"producer_num":0,"queue_num":0}"#,
    );
}

#[test]
fn a_channel_may_be_extended_and_is_collected() {
    says(
        "$c = new class(3) extends Channel { public $more = 'more'; };
         say($c->more, $c->capacity, $c instanceof Chan, $c instanceof Co\\Channel);
         foreach ([fn () => serialize($c), fn () => clone $c] as $refused) { try { $refused(); } catch (Throwable $e) { say(get_class($e)); } }
         for ($round = 0; $round < 2; $round++) {
             $before = memory_get_usage();
             for ($i = 0; $i < 1000; $i++) { $x = new Channel(1); $o = new stdClass(); $o->channel = $x; $x->push($o); unset($x, $o); }
             gc_collect_cycles();
         }
         say(memory_get_usage() - $before < 4096);",
        "[\"more\",3,true,true]\n\"Exception\"\n\"Error\"\ntrue",
    );
}

#[test]
fn a_yielded_coroutine_is_resumed_by_its_id() {
    says(
        "$cid = go(function () { say('began'); say(Coroutine::yield()); say(Coroutine::suspend(0.001)); });
         say(Coroutine::exists($cid), @Coroutine::resume(999));
         say(Coroutine::resume($cid)); Co::sleep(0.01);
         say(Coroutine::exists($cid), @Coroutine::resume($cid));
         $sleeps = go(fn () => Co::sleep(0.01));
         say(@Coroutine::resume($sleeps));",
        "\"began\"\n[true,false]\ntrue\ntrue\nfalse\n[false,false]\nfalse",
    );
}

#[test]
fn cancel_and_join_end_as_documented() {
    says(
        "$sleeps = go(function () { say(Co::sleep(60), Coroutine::isCanceled(), Co::sleep(0.001), Coroutine::isCanceled()); });
         say(Coroutine::cancel($sleeps), Coroutine::cancel(999)); Co::sleep(0.01);
         say(Coroutine::cancel($sleeps));
         $long = go(fn () => Co::sleep(0.05));
         say(Coroutine::join([$long], 0.001), Coroutine::join([$long]), Coroutine::join([$long]));
         say(Coroutine::join([]), Coroutine::join([Coroutine::getCid()]), Coroutine::join([$sleeps]));",
        "[true,false]\n[false,true,true,false]\nfalse\n[false,true,false]\n[false,false,false]",
    );
}

#[test]
fn coroutines_are_listed_and_counted() {
    says(
        "$cid = go(fn () => Coroutine::yield());
         say(iterator_to_array(Coroutine::list()), count(Coroutine::listCoroutines()));
         $stats = Coroutine::stats(); say($stats['coroutine_num'], $stats['coroutine_peak_num'], $stats['coroutine_last_cid']);
         say(Coroutine::getCid(), Coroutine::getuid(), Coroutine::getPcid(), Coroutine::getPcid($cid), Coroutine::getPcid(99));
         say(Coroutine::getElapsed($cid) >= 0, Coroutine::getElapsed(99), Coroutine::getStackUsage(99));
         Coroutine::resume($cid); say(count(Coroutine::list()));",
        "[[1,2],2]\n[2,2,2]\n[1,1,-1,1,false]\n[true,-1,false]\n1",
    );
}

#[test]
fn a_waiting_coroutine_has_a_backtrace() {
    let output = run("use Swoole\\Coroutine;
        function inner() { Coroutine::yield(); }
        function outer() { inner(); }
        function main() {
            $cid = go('outer');
            $names = array_map(fn ($frame) => ($frame['class'] ?? '') . ($frame['type'] ?? '') . $frame['function'], Coroutine::getBackTrace($cid));
            echo json_encode([in_array('inner', $names), in_array('Swoole\\Coroutine::yield', $names), end($names)]), \"\\n\";
            echo json_encode([count(Coroutine::getBackTrace($cid, 0, 1)), Coroutine::getBackTrace(99), Coroutine::getBackTrace()[0]['function']]), \"\\n\";
            Coroutine::printBackTrace($cid);
            Coroutine::resume($cid);
        }
        Co\\run('main');");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.starts_with("[true,true,\"outer\"]\n[1,false,\"main\"]\n#0"), "{text}");
    assert!(text.contains("inner() called at [") && text.contains("program.php:5]"), "{text}");
    assert!(text.contains("outer() called at [internal function]"), "{text}");
}

#[test]
fn deferred_functions_run_in_reverse_after_any_end() {
    let output = run("use Swoole\\Coroutine;
        Co\\run(function () {
            go(function () {
                Coroutine::getContext()->value = new class { function __destruct() { echo \"context freed\\n\"; } };
                Coroutine::defer(function () { echo \"second\\n\"; });
                defer(function () { Co::sleep(0.001); echo \"first\\n\"; });
                throw new RuntimeException('not caught');
            });
            go(function () { defer(fn () => print(\"after exit\\n\")); exit; });
            Co::sleep(0.01);
            echo \"the others continue\\n\";
        });");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("Uncaught RuntimeException: not caught"), "{text}");
    let rest = text.split("program.php on line").nth(1).unwrap_or_default();
    let lines: Vec<&str> = rest.lines().skip(1).collect();
    assert_eq!(lines, ["after exit", "first", "second", "context freed", "the others continue"]);
}

#[test]
fn coroutines_nest_and_belong_to_their_creators() {
    says(
        "go(function () { go(function () { go(function () { Co::sleep(0.001); say(Coroutine::getCid(), Coroutine::getPcid()); }); say('third waits'); }); say('second waits'); });
         Co::sleep(0.01);
         // At once, or when the destructor has returned (before PHP 8.4, which forbids a switch in it).
         $said = new ArrayObject();
         (function () use ($said) { $x = new class($said) { function __construct(public $said) {} function __destruct() { go(fn () => $this->said[] = 'from a destructor'); } }; })();
         Co::sleep(0.01); say($said[0]);
         say(Coroutine::create('strlen', 'x') > 0);
         try { go('no_such_function'); } catch (TypeError) { say('TypeError'); }",
        "\"third waits\"\n\"second waits\"\n[4,3]\n\"from a destructor\"\ntrue\n\"TypeError\"",
    );
}

#[test]
fn outside_of_coroutines_their_methods_refuse() {
    prints(
        "use Swoole\\Coroutine;
         foreach ([fn () => Coroutine::yield(), fn () => Coroutine::defer(fn () => 1)] as $refused) {
             try { $refused(); } catch (Error $e) { echo $e->getMessage(), \"\\n\"; }
         }
         echo json_encode([Coroutine::getCid(), Coroutine::getPcid(), Coroutine::getContext(), Coroutine::stats()['coroutine_num']]);",
        "API must be called in the coroutine\nAPI must be called in the coroutine\n[-1,false,null,0]",
    );
}

/// A frame of C lies between the wait and the coroutine's function in each of these.
#[test]
fn a_coroutine_may_wait_within_functions_in_c() {
    prints(
        "use Swoole\\Coroutine\\Channel;
         function numbers(Channel $c) { for ($i = 0; $i < 3; $i++) { yield $c->pop(); } }
         class Text { public function __construct(private Channel $c) {} function __toString(): string { return 'text ' . $this->c->pop(); } }
         Co\\run(function () {
             $c = new Channel(1); $out = [];
             go(function () use ($c, &$out) { $out['map'] = array_map(fn ($n) => $n + $c->pop(), [1, 2, 3]); });
             go(function () use ($c, &$out) { $list = [3, 1, 2]; usort($list, function ($a, $b) use ($c) { $c->pop(); return $a <=> $b; }); $out['sort'] = $list; });
             go(function () use ($c, &$out) { $out['generator'] = iterator_to_array(numbers($c)); });
             go(function () use ($c, &$out) { ob_start(); echo 'buffered ', $c->pop(); $out['buffer'] = ob_get_clean(); });
             go(function () use ($c, &$out) { $out['regex'] = preg_replace_callback('/./', fn ($m) => $m[0] . $c->pop(), 'ab'); });
             go(function () use ($c, &$out) { $out['string'] = (string) new Text($c); });
             go(function () use ($c, &$out) { $fiber = new Fiber(function () use ($c) { Fiber::suspend($c->pop()); return $c->pop(); }); $out['fiber'] = [$fiber->start()]; $fiber->resume(); $out['fiber'][] = $fiber->getReturn(); });
             while ($c->push(10, 0.01)) { }
             ksort($out); echo json_encode($out);
         });",
        r#"{"buffer":"buffered 10","fiber":[10,10],"generator":[10,10,10],"map":[11,12,13],"regex":"a10b10","sort":[1,2,3],"string":"text 10"}"#,
    );
}

#[test]
fn coroutines_left_in_nested_calls_end_with_the_program() {
    let output = run("use Swoole\\Coroutine\\Channel;
        Co\\run(function () {
            $c = new Channel(1);
            go(function () use ($c) { ob_start(); array_map(function () use ($c) { $l = [2, 1]; usort($l, fn () => $c->pop()); }, [1]); });
            go(function () use ($c) { foreach ((function () use ($c) { yield $c->pop(); })() as $value); });
            go(function () use ($c) { $fiber = new Fiber(fn () => $c->pop()); $fiber->start(); });
        });
        echo 'end';");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "end");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("all coroutines (count: 3) are asleep - deadlock!"), "{errors}");
    assert!(errors.contains("usort() called at ["), "{errors}");
}

#[test]
fn exhausted_memory_in_a_coroutine_ends_the_program() {
    let output = run("ini_set('memory_limit', '16M');
        Co\\run(function () {
            go(function () { Co::sleep(0.01); echo \"another one ends\\n\"; });
            go(function () { array_map(function () { $text = str_repeat('x', 1 << 26); }, [1]); });
        });");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("Allowed memory size of 16777216 bytes exhausted"), "{text}");
    assert_eq!(output.status.code(), Some(255), "{output:?}");
}

#[test]
fn a_coroutine_s_stack_that_overflows_is_a_clear_fatal() {
    let output = run("function deep() { return array_map(fn () => deep(), [1]); }
        Co\\run(function () { go(function () { Co::sleep(0.001); deep(); }); });");
    assert!(!output.status.success(), "{output:?}");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    // Since PHP 8.3 the engine looks after it.
    assert!(
        text.contains("has overflowed in") || text.contains("Maximum call stack size"),
        "{text}"
    );
    assert!(text.contains("program.php"), "{text}");
}

#[test]
fn a_fault_from_outside_ends_the_program() {
    let output = run("Co\\run(fn () => posix_kill(getmypid(), SIGSEGV)); echo 'continued';");
    assert_eq!(output.stdout, b"", "{output:?}");
    assert_eq!(output.status.signal(), Some(rustix::process::Signal::SEGV.as_raw()), "{output:?}");
}

#[test]
fn a_loop_gives_way_if_the_program_asks_for_it() {
    let program = |setup: &str| {
        format!(
            "{setup}
             Co\\run(function () {{
                 $slept = 0; $until = microtime(true) + 0.2;
                 go(function () use (&$slept) {{ for ($i = 0; $i < 3; $i++) {{ Co::sleep(0.001); $slept++; }} }});
                 go(function () use (&$slept, $until) {{ while ($slept < 3 && (microtime(true) < $until || $GLOBALS['patient'])) {{ }} echo $slept; }});
             }});"
        )
    };
    prints(&program("$patient = false;"), "0");
    prints(&program("$patient = true; Co::set(['enable_preemptive_scheduler' => true]);"), "3");
    prints(&program("$patient = true; ini_set('swoole.enable_preemptive_scheduler', '1');"), "3");
    let paused = "$patient = false; Co::set(['enable_preemptive_scheduler' => true]);
        Co\\run(fn () => print(json_encode([Co::disableScheduler(), Co::enableScheduler(), Co::disableScheduler()])));";
    prints(&program(paused), "[true,true,true]0");
}

#[test]
fn the_number_of_coroutines_is_limited() {
    says(
        "Coroutine::set(['max_coroutine' => 3]);
         $warning = ''; set_error_handler(function ($level, $text) use (&$warning) { $warning = $text; });
         $waits = fn () => Coroutine::yield();
         say(go($waits), go($waits), go($waits), Coroutine::create($waits), $warning);
         Coroutine::resume(2); say(go($waits));
         Coroutine::resume(3); Coroutine::resume(4);",
        "[2,3,false,false,\"exceed max number of coroutine 3\"]\n4",
    );
}

#[test]
fn the_size_of_stacks_is_an_option() {
    says(
        "say(Coroutine::stats()['c_stack_size'] >= 2097152);
         function depth($n) { return $n === 0 ? 0 : 1 + array_map(fn () => depth($n - 1), [1])[0]; }
         say(depth(500));",
        "true\n500",
    );
    prints(
        "Swoole\\Coroutine::set(['c_stack_size' => 131072]);
         Co\\run(fn () => print(Swoole\\Coroutine::stats()['c_stack_size']));",
        "131072",
    );
}

#[test]
fn a_hundred_thousand_coroutines_leave_no_memory_behind() {
    says(
        "$ended = 0;
         $some = function (int $count) use (&$ended) {
             for ($i = 0; $i < $count; $i += 100) {
                 $group = new WaitGroup(100);
                 for ($n = 0; $n < 100; $n++) { go(function () use ($group, &$ended) { defer(function () use (&$ended) { $ended++; }); Coroutine::getContext()['x'] = 1; Co::sleep(0.0001); $group->done(); }); }
                 $group->wait();
             }
         };
         $some(1000); gc_collect_cycles(); $before = memory_get_usage();
         $some(100000); gc_collect_cycles();
         Co::sleep(0.01); say($ended, memory_get_usage() - $before < 65536);",
        "[101000,true]",
    );
}

/// 5,000 stacks of a page each, of which 1,024 remain; the heap's part may go as well.
#[test]
fn memory_of_a_burst_of_coroutines_is_returned() {
    says(
        "$resident = fn () => (int) explode(' ', file_get_contents('/proc/self/statm'))[1] * 4;
         $c = new Channel(1);
         for ($i = 0; $i < 5000; $i++) { go(fn () => $c->pop()); }
         $c->close();
         Co::sleep(0.01);
         $then = $resident();
         for ($i = 0; $i < 300 && $then - $resident() < 12000; $i++) { Co::sleep(0.1); }
         say($then - $resident() >= 12000);
         $sum = 0; $c = new Channel(1);
         for ($i = 0; $i < 5000; $i++) { go(function () use ($c, &$sum) { $sum += $c->pop(); }); }
         for ($i = 0; $i < 5000; $i++) { $c->push(1); }
         say($sum);",
        "true\n5000",
    );
}

#[test]
fn groups_and_barriers_wait_for_all() {
    says(
        "$group = new WaitGroup(1); $group->add(2); say($group->count(), $group->wait(0.001));
         for ($i = 0; $i < 3; $i++) { go(function () use ($group) { Co::sleep(0.001); $group->done(); }); }
         say($group->wait(), $group->count(), $group->wait());
         foreach ([fn () => $group->done(), fn () => (new WaitGroup())->add(-1)] as $misuse) { try { $misuse(); } catch (Exception $e) { say(get_class($e)); } }
         $barrier = Coroutine\\Barrier::make(); $ended = 0;
         for ($i = 0; $i < 3; $i++) { go(function () use ($barrier, &$ended) { Co::sleep(0.001); $ended++; }); }
         Coroutine\\Barrier::wait($barrier); say($ended, $barrier);
         $late = Coroutine\\Barrier::make(); $holds = $late;
         Coroutine\\Barrier::wait($late, 0.001); say('after its time');",
        "[3,false]\n[true,0,true]\n\"BadMethodCallException\"\n\"InvalidArgumentException\"\n[3,null]\n\"after its time\"",
    );
}

#[test]
fn a_scheduler_runs_its_functions_to_their_end() {
    prints(
        "$scheduler = new Swoole\\Coroutine\\Scheduler();
         $scheduler->set(['max_coroutine' => 50]);
         $scheduler->add(function (string $name) { Co::sleep(0.001); echo \"$name \"; }, 'added');
         $scheduler->parallel(2, function () { Co::sleep(0.002); echo 'parallel '; });
         echo json_encode([$scheduler->getOptions(), $scheduler->start()]), ' ';
         Co\\run(function () use ($scheduler) { echo json_encode(@$scheduler->start()); });",
        r#"added parallel parallel [{"max_coroutine":50},true] false"#,
    );
}

#[test]
fn functions_of_the_system_have_their_results() {
    says(
        "$file = tempnam(sys_get_temp_dir(), 'outboard');
             $s = 'Swoole\\Coroutine\\System';
             say($s::writeFile($file, \"one\\ntwo\\n\"), $s::writeFile($file, 'three', FILE_APPEND), $s::readFile($file));
             $handle = fopen($file, 'r+'); say($s::fgets($handle), $s::fread($handle, 3), $s::fread($handle), $s::fwrite($handle, 'xyz', 2)); fclose($handle); unlink($file);
             say($s::exec('echo out; exit 3')['code'], $s::gethostbyname('127.0.0.1'), $s::dnsLookup('127.0.0.1'), $s::getaddrinfo('127.0.0.1'), $s::statvfs('/')['bsize']);
             $pid = pcntl_fork(); if ($pid === 0) { posix_kill(getmypid(), SIGKILL); }
             say($s::waitPid($pid, 5)['signal'] === SIGKILL, $s::wait(0.01));
             go(function () { Co::sleep(0.005); posix_kill(getmypid(), SIGUSR1); });
             say($s::waitSignal(SIGUSR1, 5), $s::waitSignal(SIGUSR1, 0.01));
             $pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
             say($s::waitEvent($pair[0], SWOOLE_EVENT_READ, 0.001), $s::waitEvent($pair[0], SWOOLE_EVENT_WRITE));
             go(function () use ($pair) { Co::sleep(0.001); fwrite($pair[1], 'x'); });
             say($s::waitEvent($pair[0], SWOOLE_EVENT_READ, 5) === SWOOLE_EVENT_READ, $s::sleep(0.001));",
        r#"[8,5,"one\ntwo\nthree"]
["one\n","two","\nthree",2]
[3,"127.0.0.1","127.0.0.1",["127.0.0.1"],4096]
[true,false]
[true,false]
[false,1024]
[true,true]"#,
    );
}
