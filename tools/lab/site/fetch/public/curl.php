<?php
require dirname(__DIR__) . '/page.php';
echo page_by_curl($_GET['latency']);
