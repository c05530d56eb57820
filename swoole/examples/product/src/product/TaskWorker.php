<?php

namespace product;

/** What task_class implements. */
interface TaskWorker
{
    public function onTask($server, $data);
}
