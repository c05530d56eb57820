<?php

namespace product;

/** A server with its master, manager and workers, whose process names begin with its own. */
class Server
{
    private $config;

    private $server;

    private $worker;

    private $tasks;

    public function __construct(Config $config)
    {
        $this->config = $config;
    }

    public function run()
    {
        $listen = $this->config->get('listen');
        list($host, $port) = array_shift($listen);
        $this->server = new \swoole_http_server($host, $port, SWOOLE_PROCESS, SWOOLE_SOCK_TCP);
        foreach ($listen as list($host, $port)) {
            $management = $this->server->addlistener($host, $port, SWOOLE_SOCK_TCP);
            $management->on('request', [$this, 'onManagement']);
        }
        $this->server->set($this->config->setting());
        foreach (['Start', 'ManagerStart', 'WorkerStart', 'WorkerStop', 'Shutdown', 'Request', 'Task', 'Finish'] as $event) {
            $this->server->on($event, [$this, "on$event"]);
        }
        if ($this->config->isDevelopment()) {
            $this->server->addProcess(new \swoole_process([$this, 'watch']));
        }
        $this->server->start();
    }

    public function onStart($server)
    {
        swoole_set_process_name("product-{$this->config->name}-master");
        file_put_contents($this->config->pidFile('master'), $server->master_pid);
    }

    public function onManagerStart($server)
    {
        swoole_set_process_name("product-{$this->config->name}-manager");
        file_put_contents($this->config->pidFile('manager'), $server->manager_pid);
    }

    public function onShutdown($server)
    {
        @unlink($this->config->pidFile('master'));
        @unlink($this->config->pidFile('manager'));
    }

    public function onWorkerStart($server, $workerId)
    {
        $kind = $server->taskworker ? 'task' : 'event';
        swoole_set_process_name("product-{$this->config->name}-$kind-work-$workerId");
        if ($server->taskworker) {
            $class = $this->config->get('task_class');
            $this->tasks = new $class();
            return;
        }
        $class = $this->config->get('worker_class');
        $this->worker = new $class($this->config, $server);
        $this->worker->onStart($server, $workerId);
        swoole_timer_tick(10000, function () {
            gc_collect_cycles();
        });
    }

    public function onWorkerStop($server, $workerId)
    {
        if ($this->worker) {
            $this->worker->onShutdown($server, $workerId);
        }
    }

    public function onRequest($request, $response)
    {
        $this->worker->onRequest($request, $response);
    }

    public function onManagement($request, $response)
    {
        $response->header('Content-Type', 'application/json');
        $response->end(json_encode(['server' => $this->config->name] + $this->server->stats()));
    }

    public function onTask($server, $taskId, $workerId, $data)
    {
        return $this->tasks->onTask($server, $data);
    }

    public function onFinish($server, $taskId, $data)
    {
    }

    /** Reloads when a file has changed. */
    public function watch(\swoole_process $process)
    {
        swoole_set_process_name("product-{$this->config->name}-watch");
        $before = $this->newest();
        while (true) {
            usleep(200000);
            if (($now = $this->newest()) > $before) {
                $before = $now;
                $this->server->reload();
            }
        }
    }

    private function newest()
    {
        clearstatcache();
        $files = new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator("{$this->config->root}/src", \FilesystemIterator::SKIP_DOTS));
        $newest = 0;
        foreach ($files as $file) {
            $newest = max($newest, $file->getMTime());
        }
        return $newest;
    }
}
