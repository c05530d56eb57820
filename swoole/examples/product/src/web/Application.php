<?php

namespace web;

use product\Config;
use product\Scheduler;
use product\Worker;

/** /module/controller/action is module\controller\controller::actionAction(). */
class Application implements Worker
{
    private $config;

    private $server;

    public function __construct(Config $config, $server)
    {
        $this->config = $config;
        $this->server = $server;
    }

    public function onStart($server, $workerId)
    {
    }

    public function onShutdown($server, $workerId)
    {
    }

    public function onRequest($request, $response)
    {
        $names = array_filter(explode('/', trim($request->server['path_info'], '/')), 'strlen') + ['demo', 'index', 'index'];
        $class = "$names[0]\\controller\\$names[1]";
        $method = 'action' . ucfirst($names[2]);
        // These names are part of a path of a file.
        if (preg_grep('/^\w+$/', $names, PREG_GREP_INVERT) || count($names) > 3 || !class_exists($class) || !method_exists($class, $method)) {
            return $this->fail($response, new \RuntimeException('Not Found', 404), false);
        }
        $controller = new $class($request, $response, $this->server);
        $end = function ($error, $page) use ($controller, $response) {
            if ($error) {
                return $this->fail($response, $error, $controller->isJson);
            }
            // Without a page, the action ends the response itself.
            if ($page === null) {
                return;
            }
            $response->header('Content-Type', $controller->isJson ? 'application/json' : 'text/html; charset=utf-8');
            $response->end($page);
        };
        try {
            $page = $controller->$method();
        } catch (\Throwable $error) {
            return $end($error, null);
        }
        $page instanceof \Generator ? Scheduler::run($page, $end) : $end(null, $page);
    }

    private function fail($response, \Throwable $error, $isJson)
    {
        $code = $error->getCode() ?: 500;
        $response->status($code >= 400 && $code < 600 ? $code : 500);
        $response->header('Content-Type', $isJson ? 'application/json' : 'text/html; charset=utf-8');
        $text = $this->config->isDevelopment() ? $error : $error->getMessage();
        $response->end($isJson ? json_encode(['code' => $code, 'msg' => (string) $text]) : htmlspecialchars($text) . "[$code]");
    }
}
