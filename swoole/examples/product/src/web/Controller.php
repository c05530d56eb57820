<?php

namespace web;

/** A request's controller. An action returns its page, or a generator that does. */
abstract class Controller
{
    protected $request;

    protected $response;

    protected $server;

    public $isJson = false;

    public function __construct($request, $response, $server)
    {
        $this->request = $request;
        $this->response = $response;
        $this->server = $server;
    }

    protected function json($value)
    {
        $this->isJson = true;
        return json_encode(['code' => 0, 'data' => $value]);
    }
}
