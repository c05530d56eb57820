<?php

namespace demo;

class Tasks implements \product\TaskWorker
{
    public function onTask($server, $data)
    {
        return array_sum($data);
    }
}
