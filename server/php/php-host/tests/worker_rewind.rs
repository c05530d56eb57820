//! Isolation by rewind: the script boots once, and one process handles each request from the same memory.

mod driver;

use driver::{Response, ScriptWorker, TempDir, dirty, eventually, finished, get, is_running};
use outboard_ring::control::{Event, Isolation, WritesBy};

/// `ci/test-asan` leaves out this module: AddressSanitizer reserves more memory than a snapshot may have.
mod a_rewound_worker {
    use super::*;

    /// Each rewind is compared with the snapshot, byte by byte.
    fn rewinding(code: &str) -> ScriptWorker {
        rewinding_with(code, &[])
    }

    fn rewinding_with(code: &str, variables: &[(&str, &str)]) -> ScriptWorker {
        ScriptWorker::with(code, |settings| {
            settings.worker.as_mut().unwrap().isolation = Isolation::Rewind;
            let verify = [("OUTBOARD_VERIFY_REWIND", "1")];
            for (name, value) in verify.iter().chain(variables) {
                settings.env.insert((*name).into(), (*value).into());
            }
        })
    }

    /// Sends a request, after which the worker takes another one.
    fn request(app: &mut ScriptWorker, name: &str) -> Response {
        let response = app.request(name);
        if response.done.leaving {
            app.host.event();
            let next = app.host.fork();
            let printed = std::mem::replace(&mut app.worker, next).output();
            panic!(
                "the worker leaves after {name}: {printed}\n{response:?}\n{:?}",
                app.host.started
            );
        }
        response
    }

    #[track_caller]
    fn output(app: &mut ScriptWorker, name: &str) -> String {
        finished(&request(app, name))
    }

    #[test]
    fn no_state_of_a_request_reaches_the_next() {
        for asking in [
            "Outboard\\serve(fn () => response());",
            "while (frankenphp_handle_request(function () { echo response(); }));",
            "Outboard\\snapshot(); echo response();",
        ] {
            let mut app = rewinding(&dirty(asking));
            let first = output(&mut app, "a");
            assert!(first.starts_with("[0,0,1,false,"), "{first}");
            for _ in 0..100 {
                assert_eq!(output(&mut app, "a"), first, "{asking}");
            }
        }
    }

    #[test]
    fn one_process_handles_all_requests() {
        let mut app = rewinding(
            "file_put_contents(__DIR__ . '/boots', '.', FILE_APPEND); Outboard\\serve(fn () => (string) getmypid());",
        );
        let first = output(&mut app, "a");
        assert_eq!((output(&mut app, "b"), output(&mut app, "c")), (first.clone(), first));
        assert_eq!(std::fs::read_to_string(app.folder.0.join("boots")).unwrap(), ".");
        assert_eq!(app.stop(), Some(0));
    }

    /// A byte near the end of the C library's heap, this number of pages before it.
    fn place_in_heap(pid: i32, page: u64) -> u64 {
        let mappings = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        let is_of_snapshot = |line: &&str| line.contains(" rw-p ") && line.contains("snapshot");
        let heap = mappings.lines().filter(is_of_snapshot).nth(1).unwrap();
        let end = heap.split(['-', ' ']).nth(1).unwrap();
        u64::from_str_radix(end, 16).unwrap() - 4096 * page - 8
    }

    #[test]
    fn what_a_child_writes_to_its_memory_is_undone() {
        for hiding in ["", "pcntl_signal(SIGCHLD, SIG_IGN);"] {
            let mut app = rewinding(&format!(
                "Outboard\\serve(function ($request) {{
                    {hiding}
                    $to = '/proc/' . getmypid() . '/mem bs=1 conv=notrunc seek=' . substr($request->path(), 1);
                    return exec('printf x | dd of=' . $to . ' 2>&1; echo ended');
                }});"
            ));
            for page in 0..12 {
                let at = place_in_heap(app.worker.pid, page);
                assert_eq!(output(&mut app, &at.to_string()), "ended");
            }
        }
    }

    /// Between two requests, where no rewind looks: the check of a debug build finds it.
    #[test]
    fn a_page_that_differs_ends_a_debug_build() {
        let mut app = ScriptWorker::with("Outboard\\serve(fn () => 'none');", |settings| {
            settings.worker.as_mut().unwrap().isolation = Isolation::Rewind;
        });
        for _ in 0..10 {
            output(&mut app, "a");
        }
        let pid = app.worker.pid;
        // The kernel counts the fault of this write for the process that writes.
        let memory = std::fs::File::options().write(true).open(format!("/proc/{pid}/mem")).unwrap();
        let at = place_in_heap(pid, 0);
        std::os::unix::fs::FileExt::write_all_at(&memory, b"x", at).unwrap();
        app.worker.begin(&get("a"));
        assert_eq!(app.wait_for_exit(), None, "by a signal");
        let printed = app.worker.output();
        assert!(printed.contains("after a rewind the memory differs at 0x"), "{printed}");
    }

    #[test]
    fn a_worker_with_little_memory_handles_requests() {
        for limit in ["2M", "4M", "6M", "8M", "12M", "-1"] {
            let mut app = ScriptWorker::with(
                "Outboard\\serve(fn () => ini_get('memory_limit'));",
                |settings| {
                    settings.worker.as_mut().unwrap().isolation = Isolation::Rewind;
                    settings.ini.insert("memory_limit".into(), limit.into());
                },
            );
            for _ in 0..3 {
                assert_eq!(output(&mut app, "a"), limit);
            }
        }
    }

    #[test]
    fn after_the_snapshot_the_script_is_an_ordinary_one() {
        let mut app = rewinding(
            "$booted = 'booted'; Outboard\\snapshot();
             header('X-Query: ' . ($_GET['q'] ?? 'none')); http_response_code(201);
             register_shutdown_function(function () { echo ' shutdown'; });
             echo $booted, ' ', $_SERVER['REQUEST_METHOD'], ' ', Outboard\\request()->path();
             if (isset($_GET['exit'])) exit(' exit'); echo ' end';",
        );
        for _ in 0..3 {
            let response = app.worker.request(&get("p").query("q=1"));
            assert_eq!((response.status, response.line("X-Query")), (201, Some("1")));
            assert_eq!(finished(&response), "booted GET /p end shutdown");
            let response = app.worker.request(&get("p").query("exit"));
            assert_eq!(response.line("X-Query"), Some("none"));
            assert_eq!(finished(&response), "booted GET /p exit shutdown");
        }
    }

    #[test]
    fn a_request_that_fails_is_undone_as_any_other() {
        for (code, words) in [
            ("throw new DomainException('a bug');", "Uncaught DomainException: a bug"),
            ("str_repeat('x', 1 << 30);", "Allowed memory size"),
            ("$x = []; while (true) { $x[] = str_repeat('x', 1000); }", "Allowed memory size"),
            ("undefined_function();", "undefined function"),
            ("(new Fiber(function () { Fiber::suspend(exit('in a fiber')); }))->start();", ""),
            (
                "register_shutdown_function(function () { exit(3); }); trigger_error('late', E_USER_ERROR);",
                "late",
            ),
        ] {
            let mut app = rewinding(&format!(
                "$n = 0; Outboard\\snapshot(); $n++; if (Outboard\\request()->path() === '/fail') {{ {code} }} echo $n;"
            ));
            for _ in 0..3 {
                assert_eq!(output(&mut app, "a"), "1");
                let failed = request(&mut app, "fail");
                assert!(failed.log_text().contains(words), "{code}: {failed:?}");
            }
        }
    }

    #[test]
    fn random_numbers_differ() {
        for draw in [
            "mt_rand()",
            "rand()",
            "lcg_value()",
            "uniqid('', true)",
            "bin2hex(random_bytes(4))",
            "bin2hex(openssl_random_pseudo_bytes(4))",
            "session_create_id()",
            "password_hash('a', PASSWORD_BCRYPT, ['cost' => 4])",
            "bin2hex(openssl_pkey_get_details(openssl_pkey_new(['curve_name' => 'prime256v1', 'private_key_type' => OPENSSL_KEYTYPE_EC]))['ec']['d'])",
            "(new Random\\Randomizer())->getInt(0, PHP_INT_MAX)",
        ] {
            let mut app = rewinding(&format!("{draw}; Outboard\\serve(fn () => (string) {draw});"));
            let mut drawn: Vec<String> = (0..20).map(|_| output(&mut app, "a")).collect();
            app.worker = app.host.fork();
            drawn.extend((0..20).map(|_| output(&mut app, "a")));
            drawn.sort();
            drawn.dedup();
            assert_eq!(drawn.len(), 40, "{draw}");
        }
    }

    #[test]
    fn what_a_request_opens_is_closed() {
        let mut app = rewinding(
            "Outboard\\snapshot();
             $files = []; for ($i = 0; $i < 50; $i++) { $files[] = fopen('/dev/null', 'r'); }
             $pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0); $GLOBALS['kept'] = [$files, $pair];
             echo count(scandir('/proc/self/fd'));",
        );
        let first = output(&mut app, "a");
        for _ in 0..20 {
            assert_eq!(output(&mut app, "a"), first);
        }
    }

    #[test]
    fn a_file_of_the_boot_is_open_again_at_its_position() {
        let mut app = rewinding(
            "file_put_contents(__DIR__ . '/data', 'abcdef'); $file = fopen(__DIR__ . '/data', 'r'); fread($file, 1);
             Outboard\\snapshot();
             echo fread($file, 2); fclose($file); $other = fopen('/dev/zero', 'r'); echo strlen(fread($other, 3));",
        );
        for _ in 0..3 {
            assert_eq!(output(&mut app, "a"), "bc3");
        }
    }

    #[test]
    fn memory_that_a_request_maps_is_unmapped() {
        let mut app = rewinding(
            "Outboard\\snapshot(); $kept = []; for ($i = 0; $i < 8; $i++) { $kept[] = str_repeat('x', 3 << 20); }
             echo (int) explode(' ', file_get_contents('/proc/self/statm'))[0] >> 9;",
        );
        let first = output(&mut app, "a");
        for _ in 0..20 {
            assert_eq!(output(&mut app, "a"), first);
        }
    }

    #[test]
    fn memory_of_the_boot_that_a_request_frees_is_back() {
        let mut app = rewinding(
            "$large = str_repeat('abc', 2 << 20); $many = array_map(fn ($i) => \"value $i\", range(0, 100000));
             Outboard\\snapshot();
             echo strlen($large), ' ', $many[99999], ' ', count($many); $large = null; $many = null; gc_collect_cycles();
             $other = str_repeat('other', 2 << 20);",
        );
        for _ in 0..5 {
            assert_eq!(output(&mut app, "a"), "6291456 value 99999 100001");
        }
    }

    /// The process has as much memory as before, but not the same.
    #[test]
    fn memory_of_the_boot_that_a_request_replaces_by_as_much_is_back() {
        let mut app = rewinding(
            "$large = str_repeat('abc', 2 << 20); $other = str_repeat('def', 2 << 20);
             Outboard\\snapshot();
             echo md5($large), md5($other);
             $first = str_repeat('x', 4 << 20); $large = null; $other = null; $first = null;
             $kept = [str_repeat('uvw', 2 << 20), str_repeat('xyz', 2 << 20)]; $GLOBALS['kept'] = $kept;",
        );
        let first = output(&mut app, "a");
        for _ in 0..5 {
            assert_eq!(output(&mut app, "a"), first);
        }
    }

    /// Whether the worker is put back after the last of so many requests, instead of ending.
    fn is_rewound(app: &ScriptWorker, sent: u64) -> bool {
        let rewinds = || app.worker.channel.rewinds().count;
        eventually(|| rewinds() == sent || !is_running(app.worker.pid));
        rewinds() == sent
    }

    /// By FFI, whose calls no function of PHP sees, and by extensions.
    #[test]
    fn whatever_native_code_changes_of_the_process_is_undone() {
        for by_page_map in [false, true] {
            let code = include_str!("fixtures/native.php").strip_prefix("<?php").unwrap();
            let mut app = ScriptWorker::with(code, |settings| {
                settings.worker.as_mut().unwrap().isolation = Isolation::Rewind;
                settings.ini.insert("ffi.enable".into(), "1".into());
                settings.env.insert("OUTBOARD_VERIFY_REWIND".into(), "1".into());
                if by_page_map {
                    settings.env.insert("OUTBOARD_REWIND_BY_PAGE_MAP".into(), "1".into());
                }
            });
            let probe = output(&mut app, "probe");
            let names = output(&mut app, "names");
            assert!(names.lines().count() > 80, "{names}");
            let (mut ended, mut different, mut sent) = (Vec::new(), Vec::new(), 2);
            for name in names.lines() {
                let response = app.request(&name.replace(' ', "%20"));
                assert_eq!(response.text(), "changed", "{name}: {response:?}");
                sent += 1;
                if !is_rewound(&app, sent) {
                    ended.push(name);
                    assert!(matches!(app.host.event(), Event::Exited { .. }), "{name}");
                    app.worker = app.host.fork();
                    sent = 0;
                }
                sent += 1;
                let now = output(&mut app, "probe");
                if now != probe {
                    different.push(format!("{name}:\n{probe}\n{now}"));
                }
            }
            assert!(different.is_empty(), "{}", different.join("\n"));
            eprintln!("{} of {} end the worker: {ended:?}", ended.len(), names.lines().count());
        }
    }

    /// As libtinfo does to read a file: for most processes this changes nothing.
    #[test]
    fn an_identity_that_is_set_again_ends_no_worker() {
        let code = "$c = FFI::cdef('int setresuid(unsigned r, unsigned e, unsigned s); int setfsgid(unsigned g); int seteuid(unsigned e);');
             Outboard\\snapshot();
             if (Outboard\\request()->path() === '/another') {
                 $c->seteuid(65534);
                 $c->seteuid(0);
             } else {
                 $c->setresuid(4294967295, posix_getuid(), 4294967295);
                 $c->setfsgid(posix_getegid());
             }
             echo 'up';";
        let mut app = ScriptWorker::with(code, |settings| {
            settings.worker.as_mut().unwrap().isolation = Isolation::Rewind;
            settings.ini.insert("ffi.enable".into(), "1".into());
        });
        for _ in 0..3 {
            assert_eq!(output(&mut app, "same"), "up");
        }
        // Only root may take another one, and it has other capabilities meanwhile.
        let is_root = rustix::process::geteuid().is_root();
        assert_eq!(app.request("another").done.leaving, is_root);
    }

    #[test]
    fn the_process_is_as_it_was() {
        let mut app = rewinding(
            "chdir('/usr'); umask(022); Outboard\\snapshot();
             echo getcwd(), ' ', decoct(umask()), ' ', pcntl_signal_get_handler(SIGUSR2), ' ', setlocale(LC_ALL, 0), ' ', getenv('A') ?: '-', ' ', pcntl_alarm(0);
             chdir('/tmp'); umask(0777); pcntl_signal(SIGUSR2, fn () => 1); pcntl_alarm(1000); putenv('A=1'); setlocale(LC_ALL, 'C.UTF-8');
             pcntl_sigprocmask(SIG_BLOCK, [SIGUSR1]);",
        );
        let first = output(&mut app, "a");
        // The last are the seconds until an alarm of the request before.
        assert!(first.starts_with("/usr 22 0 ") && first.ends_with(" 0"), "{first}");
        for _ in 0..3 {
            assert_eq!(output(&mut app, "a"), first);
        }
    }

    #[test]
    fn what_cannot_be_undone_ends_the_worker_after_its_response() {
        for (code, leaves) in [
            ("if (pcntl_fork() === 0) { sleep(300); exit; }", true),
            ("posix_setrlimit(POSIX_RLIMIT_NOFILE, 100, 100);", false),
        ] {
            let code = format!("$n = 0; Outboard\\snapshot(); echo ++$n; {code}");
            let mut app = ScriptWorker::with(&code, |settings| {
                settings.worker.as_mut().unwrap().isolation = Isolation::Rewind;
                settings.background_programs = leaves;
            });
            let response = app.request("a");
            assert_eq!(finished(&response), "1", "{code}");
            assert!(matches!(app.host.event(), Event::Exited { .. }), "{code}");
            app.worker = app.host.fork();
            assert_eq!(finished(&app.request("a")), "1", "{code}");
        }
    }

    #[test]
    fn coroutines_timers_and_fetches_of_a_request_are_forgotten() {
        let mut app = rewinding(
            "Outboard\\serve(function ($request) {
                 Outboard\\spawn(function () { Outboard\\sleep(0.05); });
                 return Outboard\\concurrently([function () { Outboard\\sleep(0.001); return 1; }, fn () => 2]);
             });",
        );
        for _ in 0..3 {
            let response = app.request("a");
            assert_eq!(response.text(), "[1,2]");
            if response.done.leaving {
                app.host.event();
                app.worker = app.host.fork();
            }
        }
    }

    #[test]
    fn a_crash_costs_one_response() {
        let mut app = rewinding(
            "Outboard\\snapshot(); if (Outboard\\request()->path() === '/crash') { posix_kill(getmypid(), SIGKILL); } echo 'up';",
        );
        assert_eq!(output(&mut app, "a"), "up");
        app.worker.begin(&get("crash"));
        assert!(matches!(app.host.event(), Event::Exited { signal: Some(9), .. }));
        app.worker = app.host.fork();
        assert_eq!(output(&mut app, "a"), "up");
    }

    /// The gateway has a successor handle the next request while the kernel takes the process apart.
    #[test]
    fn its_death_is_announced() {
        let code = "$c = FFI::cdef('void _exit(int status); void exit(int status); void abort(); int raise(int number);');
             Outboard\\snapshot();
             switch (Outboard\\request()->path()) {
                 case '/_exit': $c->_exit(7);
                 case '/exit': $c->exit(8);
                 case '/abort': $c->abort();
                 case '/fault': FFI::cast('char *', 16)[0] = 'x';
                 case '/bus': $c->raise(7);
                 case '/depth': array_map($f = function ($n) use (&$f) { return array_map($f, [$n + 1]); }, [0]);
                 case '/kill': posix_kill(getmypid(), SIGKILL);
                 case '/child': $pid = pcntl_fork(); if ($pid === 0) { $c->_exit(9); } pcntl_waitpid($pid, $status);
             }
             echo 'up';";
        let mut app = ScriptWorker::with(code, |settings| {
            settings.worker.as_mut().unwrap().isolation = Isolation::Rewind;
            settings.ini.insert("ffi.enable".into(), "1".into());
            // Since PHP 8.3 the engine ends such a script itself.
            settings.ini.insert("zend.max_allowed_stack_size".into(), "-1".into());
        });
        for (path, ending, is_announced) in [
            ("_exit", (Some(7), None), true),
            ("exit", (Some(8), None), true),
            ("abort", (None, Some(libc::SIGABRT)), true),
            ("fault", (None, Some(libc::SIGSEGV)), true),
            ("bus", (None, Some(libc::SIGBUS)), true),
            ("depth", (None, Some(libc::SIGSEGV)), true),
            ("kill", (None, Some(libc::SIGKILL)), false),
        ] {
            assert_eq!(output(&mut app, "a"), "up");
            app.worker.begin(&get(path));
            let Event::Exited { code, signal, .. } = app.host.event() else { panic!("{path}") };
            assert_eq!((code, signal), ending, "{path}");
            assert_eq!(app.worker.channel.is_dying(), is_announced, "{path}");
            app.worker = app.host.fork();
        }
        assert_eq!(output(&mut app, "child"), "up");
        assert!(!app.worker.channel.is_dying());
    }

    /// Compiles a hundred patterns, one of which is of this request alone.
    const WITH_PATTERNS: &str = "set_error_handler(function () { echo 'handled'; });
         $n = 0;
         Outboard\\snapshot();
         for ($i = 0; $i < 100; $i++) {
             $n += preg_match(\"/^(?:pattern|number)[ ]$i [a-z]{2,9}(?:a|few|more|words){0,9}(?<rest>[^x-z]*?)\\$/u\", \"pattern $i abc\");
         }
         $own = Outboard\\request()->path();
         echo $n, preg_match(\"#^$own\\$#\", $own), ' ', preg_last_error_msg();";

    /// The output of a request, and how many pages the rewind after it copies back.
    fn output_and_pages(app: &mut ScriptWorker, name: &str) -> (String, u64) {
        let before = app.worker.channel.rewinds();
        let output = output(app, name);
        eventually(|| app.worker.channel.rewinds().count > before.count);
        (output, app.worker.channel.rewinds().pages - before.pages)
    }

    #[test]
    fn patterns_that_every_request_compiles_are_compiled_once() {
        let mut app = rewinding(WITH_PATTERNS);
        let names: Vec<String> = (0..150).map(|number| format!("page{number}")).collect();
        let pages = names.iter().map(|name| {
            let (output, pages) = output_and_pages(&mut app, name);
            assert_eq!(output, "1001 No error");
            pages
        });
        let pages: Vec<u64> = pages.collect();
        let (at_first, later) = (pages[4], *pages.last().unwrap());
        assert!(later + 5 < at_first, "{pages:?}");
        assert_eq!(app.stop(), Some(0));
    }

    #[test]
    fn large_patterns_are_kept_up_to_a_limit() {
        let mut app = rewinding(
            "Outboard\\snapshot();
             for ($i = 0; $i < 300; $i++) { preg_match(\"/$i(?:(?:a|bc){1,200}[^x]*){1,10}/\", 'none'); }
             echo preg_last_error_msg();",
        );
        let after = |app: &mut ScriptWorker, requests: u64| {
            while app.worker.channel.rewinds().count < requests {
                let before = app.worker.channel.rewinds().count;
                assert_eq!(output(app, "a"), "No error");
                eventually(|| app.worker.channel.rewinds().count > before);
            }
            anonymous_memory_mib(app.worker.pid)
        };
        let (at_first, later) = (after(&mut app, 7), after(&mut app, 70));
        let kept = later - at_first;
        assert!((2..24).contains(&kept), "{at_first} MiB, then {later} MiB");
    }

    fn anonymous_memory_mib(pid: i32) -> u64 {
        let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
        let anonymous = rollup.lines().find_map(|line| line.strip_prefix("Anonymous:")).unwrap();
        anonymous.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
    }

    /// After which all of the process is compared.
    #[test]
    fn patterns_are_kept_where_requests_call_native_code() {
        let code = WITH_PATTERNS.to_owned() + "FFI::cdef('int getpid(void);')->getpid();";
        let mut app = ScriptWorker::with(&code, |settings| {
            settings.worker.as_mut().unwrap().isolation = Isolation::Rewind;
            settings.env.insert("OUTBOARD_VERIFY_REWIND".into(), "1".into());
            settings.ini.insert("ffi.enable".into(), "1".into());
        });
        for _ in 0..20 {
            assert_eq!(output(&mut app, "page"), "1001 No error");
        }
    }

    /// Each request starts with the locale of the boot, whatever is in memory.
    #[test]
    fn locales_conversions_and_their_patterns_are_kept() {
        let code = "$files = ['C.utf8/LC_TIME', 'ISO8859-2.so'];
             $c = FFI::cdef('struct info { size_t a[7]; size_t in_use; size_t b[2]; }; struct info mallinfo2(void);');
             Outboard\\snapshot();
             $mapped = file_get_contents('/proc/self/maps');
             $found = array_filter($files, fn ($file) => str_contains($mapped, $file));
             $before = setlocale(LC_ALL, 0);
             setlocale(LC_ALL, 'C.UTF-8');
             $converted = bin2hex(iconv('ISO-8859-2', 'UTF-8', \"\\xb1\"));
             $in_use = $c->mallinfo2()->in_use;
             for ($i = 0, $n = 0; $i < 200; $i++) {
                 $n += preg_match(\"/^\\\\w(?:some|other)[ ]{1,5}{$i}[a-z]{2,9}(?:a|few|more|words){0,9}\\$/\", 'none');
             }
             $are_compiled = $c->mallinfo2()->in_use - $in_use > 20000;
             echo count($found), $are_compiled ? ' compiled ' : ' kept ', \"$before $converted $n \", setlocale(LC_ALL, 0);";
        for variables in [&[][..], &[("OUTBOARD_REWIND_BY_PAGE_MAP", "1")]] {
            let mut app = ScriptWorker::with(code, |settings| {
                settings.worker.as_mut().unwrap().isolation = Isolation::Rewind;
                settings.ini.insert("ffi.enable".into(), "1".into());
                for (name, value) in variables.iter().chain(&[("OUTBOARD_VERIFY_REWIND", "1")]) {
                    settings.env.insert((*name).into(), (*value).into());
                }
            });
            let outputs: Vec<String> = (0..80).map(|_| output(&mut app, "page")).collect();
            let rest = "LC_CTYPE=C.UTF-8;LC_NUMERIC=C;LC_TIME=C;LC_COLLATE=C;LC_MONETARY=C;\
                        LC_MESSAGES=C;LC_PAPER=C;LC_NAME=C;LC_ADDRESS=C;LC_TELEPHONE=C;\
                        LC_MEASUREMENT=C;LC_IDENTIFICATION=C c485 0 C.UTF-8";
            assert_eq!(outputs[0], format!("0 compiled {rest}"));
            assert_eq!(outputs[79], format!("2 kept {rest}"));
            assert!(outputs.iter().all(|output| output.ends_with(rest)), "{outputs:?}");
        }
    }

    /// What is added to the snapshot is put back like the rest.
    #[test]
    fn state_is_the_same_after_patterns_were_added() {
        let code = WITH_PATTERNS.replace("$n = 0;", "$n = 0; $kept = []; $f = fopen(__FILE__, 'r');")
            + "$kept[] = fgets($f); putenv('A' . count($kept) . '=' . str_repeat('x', 1 << 21)); $large = str_repeat('y', 9 << 20);
               echo ' ', count($kept), ftell($f), getenv('A2') === false ? '' : 'A2';";
        for variables in [&[][..], &[("OUTBOARD_REWIND_BY_PAGE_MAP", "1")]] {
            let mut app = rewinding_with(&code, variables);
            let first = output(&mut app, "page");
            assert_eq!(first, "1001 No error 158", "{variables:?}");
            for _ in 0..80 {
                assert_eq!(output(&mut app, "page"), first);
            }
        }
    }

    #[test]
    fn a_worker_may_be_stopped_before_and_after_requests() {
        for requests in [0, 1, 5] {
            let mut app = rewinding("Outboard\\serve(fn () => 'up');");
            for _ in 0..requests {
                assert_eq!(output(&mut app, "a"), "up");
            }
            assert_eq!(app.stop(), Some(0));
        }
    }

    #[test]
    fn the_backtrace_of_a_rewound_worker_is_its_own() {
        let mut app = rewinding("Outboard\\snapshot(); echo basename(getcwd()), ' ', getmypid();");
        let first = output(&mut app, "a");
        let title =
            std::fs::read_to_string(format!("/proc/{}/cmdline", first.rsplit(' ').next().unwrap()));
        assert!(title.unwrap().contains("worker 1"));
    }

    /// Numbers of a linear congruential generator: a failure can be repeated.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, limit: usize) -> usize {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % limit
        }
    }

    /// The names in the fixture's list.
    fn pieces(code: &str) -> Vec<&str> {
        let lines = code.lines().filter_map(|line| line.strip_prefix("    '"));
        lines.filter_map(|line| Some(line.split_once("' => function")?.0)).collect()
    }

    #[test]
    fn gives_the_same_response_whatever_other_requests_did() {
        let code = include_str!("fixtures/pieces.php");
        give_the_same_response(rewinding(code.strip_prefix("<?php").unwrap()));
    }

    /// As on kernels before 6.7, and where userfaultfd(2) is forbidden.
    #[test]
    fn does_so_by_the_page_map_as_well() {
        let code = include_str!("fixtures/pieces.php");
        let app = rewinding_with(
            code.strip_prefix("<?php").unwrap(),
            &[("OUTBOARD_REWIND_BY_PAGE_MAP", "1")],
        );
        let Event::Started { rewind: Some(rewind), .. } = &app.host.started else {
            panic!("{:?}", app.host.started);
        };
        assert_eq!(rewind.writes_by, WritesBy::PageMap);
        give_the_same_response(app);
    }

    /// Compiled code, its counters and the caches of opcache and APCu are shared memory, which is not put back.
    #[test]
    fn does_so_with_compiled_code_and_caches() {
        let cache = TempDir::new();
        let code = include_str!("fixtures/pieces.php").strip_prefix("<?php").unwrap();
        let app = ScriptWorker::with(code, |settings| {
            settings.worker.as_mut().unwrap().isolation = Isolation::Rewind;
            settings.env.insert("OUTBOARD_VERIFY_REWIND".into(), "1".into());
            let cache = cache.0.to_str().unwrap();
            for (name, value) in [
                ("opcache.jit", "tracing"),
                ("opcache.jit_buffer_size", "16M"),
                ("opcache.jit_hot_loop", "8"),
                ("opcache.jit_hot_func", "8"),
                ("opcache.file_cache", cache),
                ("apc.enabled", "1"),
                ("zend.assertions", "1"),
            ] {
                settings.ini.insert(name.into(), value.into());
            }
        });
        give_the_same_response(app);
    }

    fn give_the_same_response(mut app: ScriptWorker) {
        let code = include_str!("fixtures/pieces.php");
        let names = pieces(code);
        assert!(names.len() > 100, "{names:?}");
        assert_eq!(output(&mut app, "values"), "values=many\n", "too few values are compared");
        let mut numbers = Numbers(1);
        let mut seen: Vec<(String, Response)> = Vec::new();
        for round in 0..600 {
            let path = match round % 3 {
                0 if !seen.is_empty() => seen[numbers.below(seen.len())].0.clone(),
                _ => {
                    let count = 1 + numbers.below(4);
                    let some: Vec<&str> =
                        (0..count).map(|_| names[numbers.below(names.len())]).collect();
                    some.join(",").replace(' ', "%20")
                }
            };
            let response = request(&mut app, &path);
            match seen.iter().find(|(known, _)| *known == path) {
                Some((_, first)) => {
                    assert_eq!(
                        (first.status, first.text()),
                        (response.status, response.text()),
                        "{path}"
                    );
                }
                None => seen.push((path, response)),
            }
        }
    }
}
