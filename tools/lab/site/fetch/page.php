<?php
/** The backend's response by plain curl: code that is independent of its server. */
function page_by_curl(string $latency): string
{
    $curl = curl_init('http://@BACKEND@/' . $latency);
    curl_setopt_array($curl, [CURLOPT_RETURNTRANSFER => true, CURLOPT_TIMEOUT => 10]);
    $body = curl_exec($curl);
    if ($body === false) {
        http_response_code(502);
        return curl_error($curl);
    }
    return $body;
}
